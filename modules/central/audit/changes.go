package audit

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/catalog"
	"versola/modules/central/change"
)

var _ change.Auditor = (*Log)(nil)

// Record implements change.Auditor: each change is an entry with its
// difference, within the transaction that makes it.
func (l *Log) Record(ctx context.Context, tx pgx.Tx, events []change.Event) error {
	entries := make([]Entry, len(events))
	for i, e := range events {
		changes, err := Difference(e.Before, e.After)
		if err != nil {
			return fmt.Errorf("compare %s: %w", e.Ref, err)
		}
		tenant := e.Ref.Tenant
		if e.Ref.Kind == catalog.KindNameTenant {
			tenant = e.Ref.ID
		}
		entries[i] = Entry{
			At: e.At, Action: e.Ref.Kind + "." + string(e.Action), Actor: ActorOf(e.Actor), Tenant: tenant,
			Object:  &Object{Kind: e.Ref.Kind, Tenant: e.Ref.Tenant, ID: e.Ref.ID},
			Address: e.Actor.Address, RequestID: e.Actor.RequestID, Changes: changes,
			Detail: map[string]string{"revision": strconv.FormatInt(e.Revision, 10)},
		}
	}
	return l.Append(ctx, tx, entries...)
}

// ActorOf returns the actor of a change of configuration.
func ActorOf(a change.Actor) Actor {
	return Actor{Kind: a.Kind, ID: a.ID, Tenant: a.Tenant}
}
