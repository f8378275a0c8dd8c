package audit

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Kinds of an actor.
const (
	ActorUser    = "user"    // a person, by access token or in a sign-in
	ActorClient  = "client"  // a service client
	ActorCommand = "command" // the versola command on the deployment's machine
	ActorSystem  = "system"  // the deployment itself: a schedule, a seed
	ActorUnknown = "unknown" // nobody was authenticated
)

// Actor is who did it.
type Actor struct {
	Kind   string `json:"kind"`
	ID     string `json:"id,omitempty"`     // user or client id; the operating system's user for a command
	Client string `json:"client,omitempty"` // the client that the person used
	Tenant string `json:"tenant,omitempty"` // whose user or client it is
}

// Object is what it was done to.
type Object struct {
	Kind   string `json:"kind"`
	Tenant string `json:"tenant,omitempty"`
	ID     string `json:"id"`
}

// FieldChange is one member that differs. A member that was not there before,
// or is gone, has no Before or no After.
type FieldChange struct {
	Pointer string `json:"pointer"` // JSON pointer (RFC 6901)
	Before  any    `json:"before,omitempty"`
	After   any    `json:"after,omitempty"`
}

// Entry is one thing that happened. The zero values of its optional members
// are left out.
type Entry struct {
	At time.Time `json:"at"` // UTC, microseconds; zero: now
	// Action names what happened: an object's kind or a subject and what
	// became of it, such as "client.updated" or "sign_in.failed".
	Action string  `json:"action"`
	Actor  Actor   `json:"actor"`
	Object *Object `json:"object,omitempty"`
	// Tenant is the tenant that it concerns: a tenant administrator sees the
	// entries of theirs. Default: the object's.
	Tenant string `json:"tenant,omitempty"`
	// User is the person that it concerns, for their event history.
	User      string        `json:"user,omitempty"`
	Address   string        `json:"address,omitempty"` // the caller's IP address
	RequestID string        `json:"request_id,omitempty"`
	Changes   []FieldChange `json:"changes,omitempty"`
	Truncated bool          `json:"truncated,omitempty"` // changes were cut
	// Detail holds what else is worth knowing of an event: client, factor,
	// reason, session. Never a secret, a code or a whole phone number.
	Detail map[string]string `json:"detail,omitempty"`
}

// Bounds of an entry.
const (
	// maxBody bounds a body: the log is searched and sent in pages.
	maxBody = 64 << 10
	// maxText bounds each text of an entry but those of changes: the longest
	// that is not hostile is a user agent or an error's text.
	maxText = 512
	// maxDetail bounds the members of Detail.
	maxDetail = 32
)

// encode returns the body. It never fails for the content: what is too long is
// cut, and characters that the database cannot hold are replaced.
func (e Entry) encode(now time.Time) (time.Time, []byte, error) {
	if e.At.IsZero() {
		e.At = now
	}
	e.At = e.At.UTC().Truncate(time.Microsecond)
	if e.Object != nil && e.Tenant == "" {
		e.Tenant = e.Object.Tenant
	}
	for _, s := range []*string{&e.Action, &e.Actor.Kind, &e.Actor.ID, &e.Actor.Client, &e.Actor.Tenant, &e.Tenant, &e.User, &e.Address, &e.RequestID} {
		*s = clean(*s)
	}
	if e.Action == "" {
		return e.At, nil, fmt.Errorf("encode audit entry: no action")
	}
	if e.Object != nil {
		e.Object = &Object{Kind: clean(e.Object.Kind), Tenant: clean(e.Object.Tenant), ID: clean(e.Object.ID)}
	}
	e.Detail = cleanDetail(e.Detail)
	for i := range e.Changes {
		e.Changes[i].Before, e.Changes[i].After = cleanValue(e.Changes[i].Before), cleanValue(e.Changes[i].After)
	}
	for {
		body, err := json.Marshal(e)
		if err != nil {
			return e.At, nil, fmt.Errorf("encode audit entry: %w", err)
		}
		if len(body) <= maxBody || len(e.Changes) == 0 {
			return e.At, body, nil
		}
		e.Changes, e.Truncated = e.Changes[:len(e.Changes)/2], true
	}
}

func cleanDetail(in map[string]string) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		if len(out) == maxDetail {
			break
		}
		if v != "" {
			out[clean(k)] = clean(v)
		}
	}
	return out
}

// clean makes a text one that PostgreSQL holds, of a bounded length.
func clean(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
		for s != "" && !utf8.ValidString(s[len(s)-min(len(s), utf8.UTFMax):]) && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
	}
	return withoutNUL(s)
}

func withoutNUL(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// cleanValue does the same for decoded JSON, lengths left.
func cleanValue(v any) any {
	switch v := v.(type) {
	case string:
		return withoutNUL(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = cleanValue(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, m := range v {
			out[withoutNUL(k)] = cleanValue(m)
		}
		return out
	}
	return v
}
