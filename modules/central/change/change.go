package change

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/catalog"
	"versola/platform/id"
	"versola/platform/secret"
)

// Actor is who changes something.
type Actor struct {
	// Kind is "user", "client" (a service) or "system" (the program itself, or
	// whoever may run its commands).
	Kind      string `json:"kind"`
	Tenant    string `json:"tenant,omitempty"`
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`       // as the token says it
	Address   string `json:"address,omitempty"`    // where the request came from
	RequestID string `json:"request_id,omitempty"` // of the log
}

// System is the program itself, acting by a command or at its start.
func System(command string) Actor { return Actor{Kind: "system", ID: command} }

// Op is one operation: [Put], [Delete], [AddSecret], [DropSecret] or
// [SetSecrets].
type Op interface{ target() catalog.Ref }

// Put creates or replaces an entity. A client keeps the secrets that it has,
// whatever the declaration says of them; one that becomes public loses them.
type Put struct {
	Spec catalog.Entity
	// IfVersion is the version that is replaced; 0: whatever is there.
	IfVersion int64
	// CreateOnly refuses to replace.
	CreateOnly bool
}

// Delete removes an entity.
type Delete struct {
	Ref       catalog.Ref
	IfVersion int64 // 0: whatever is there
}

// AddSecret gives a client a new current secret; those that it has stay valid.
type AddSecret struct {
	Client    catalog.Ref
	Plain     secret.Text // empty: a generated one, see [Change.NewSecrets]
	IfVersion int64       // 0: whatever is there
}

// DropSecret takes one secret away.
type DropSecret struct {
	Client    catalog.Ref
	ID        id.UUID
	IfVersion int64 // 0: whatever is there
}

// SetSecrets makes the secrets, newest first, all that the client has. Equal
// ones stay as they are.
type SetSecrets struct {
	Client catalog.Ref
	Plain  []secret.Text
	// IfNone leaves a client alone that has any.
	IfNone bool
}

func (o Put) target() catalog.Ref        { return o.Spec.Ref() }
func (o Delete) target() catalog.Ref     { return o.Ref }
func (o AddSecret) target() catalog.Ref  { return o.Client }
func (o DropSecret) target() catalog.Ref { return o.Client }
func (o SetSecrets) target() catalog.Ref { return o.Client }

// Options of one call.
type Options struct {
	// DryRun tells what would be done, and does nothing.
	DryRun bool
	// Authorize, where given, may refuse the change: it is called under the
	// lock, when the change is known to be valid, and its error is returned.
	Authorize func(before, after *View, changes []Change) error
}

// Action is what was done to an entity.
type Action string

// The actions.
const (
	Created   Action = "created"
	Updated   Action = "updated"
	Deleted   Action = "deleted"
	Unchanged Action = "unchanged"
)

// Change is what became of one entity.
type Change struct {
	Ref    catalog.Ref
	Action Action
	// Version is the entity's new one; of a deleted one, that of the deletion.
	Version int64
	// Fields are the members of the JSON form that differ, for an update.
	Fields []string
	// Before and After are the JSON forms with secrets left out: a client's are
	// named by their ids. Nil where there is none.
	Before, After json.RawMessage
	// NewSecrets are those that the change gave a client, newest first. This is
	// the only time that they can be read.
	NewSecrets []NewSecret
}

// NewSecret is a client secret that was just made.
type NewSecret struct {
	ID    id.UUID
	Plain secret.Text
}

// Result is what a call did.
type Result struct {
	// Revision is the configuration's after the call.
	Revision int64
	// Changes has one entry for each entity that the operations name, in their
	// order.
	Changes []Change
}

// Event is one change, as the audit log keeps it.
type Event struct {
	Actor    Actor
	At       time.Time
	Revision int64
	Action   Action
	Ref      catalog.Ref
	Fields   []string
	// Before and After have no secrets; see [Change].
	Before, After json.RawMessage
}

// Auditor keeps events within the transaction that makes them true.
type Auditor interface {
	Record(ctx context.Context, tx pgx.Tx, events []Event) error
}
