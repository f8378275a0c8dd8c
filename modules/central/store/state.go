package store

import (
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/catalog"
	"versola/platform/id"
)

// KindKeys is the kind of the one reference that stands for all signing keys
// among what changed; [catalog.Kinds] has none of that name.
const KindKeys = "signing_key"

// kindAny stands for any entities of all kinds (migration 00007).
const kindAny = "*"

const (
	// maxAdvance is how many changed entities are read one by one. Reading
	// everything of 70,000 entities costs 0.7 s; each of these moves a list in
	// memory, at the most a millisecond.
	maxAdvance = 500
	// maxSteps and maxStepRefs bound what a state remembers of how it came
	// about: enough for who looks several times a second, and a few hundred KiB.
	maxSteps, maxStepRefs = 64, 4 * maxAdvance
)

// Mark names one state of the configuration, also among databases that count
// the same revisions: what is restored from a backup and goes on from there
// has other tokens.
type Mark struct {
	Revision int64
	Token    id.UUID
}

// State is the configuration as of one instant. It never changes.
type State struct {
	Mark
	Snapshot *catalog.Snapshot
	Metas    map[catalog.Ref]Meta

	steps []step // oldest first, at the most maxSteps
}

// step is what differs between a state and the one after it.
type step struct {
	from Mark
	refs []catalog.Ref
}

// Since returns what was created, changed or deleted after the state of that
// mark, [KindKeys] for signing keys; false where this state does not know.
func (s *State) Since(m Mark) ([]catalog.Ref, bool) {
	if m == s.Mark {
		return nil, true
	}
	from := slices.IndexFunc(s.steps, func(p step) bool { return p.from == m })
	if from < 0 {
		return nil, false
	}
	var refs []catalog.Ref
	for _, p := range s.steps[from:] {
		refs = append(refs, p.refs...)
	}
	slices.SortFunc(refs, catalog.CompareRef)
	return slices.Compact(refs), true
}

// Next returns the state that comes after s, of which refs differ.
func (s *State) Next(m Mark, snapshot *catalog.Snapshot, metas map[catalog.Ref]Meta, refs []catalog.Ref) *State {
	next := &State{Mark: m, Snapshot: snapshot, Metas: metas, steps: append(slices.Clone(s.steps), step{s.Mark, refs})}
	total, keep := 0, 0
	for i := len(next.steps) - 1; i >= 0; i-- {
		if total += len(next.steps[i].refs); total > maxStepRefs || keep == maxSteps {
			break
		}
		keep++
	}
	next.steps = next.steps[len(next.steps)-keep:]
	return next
}

// Statements that read what is newer than a known revision; %s is the kind.
const (
	selectMark    = `SELECT revision, token FROM central.revision`
	selectKnown   = `SELECT EXISTS (SELECT FROM central.history WHERE revision = $1 AND token = $2)`
	selectChanged = `SELECT DISTINCT kind, tenant_id, id FROM central.change WHERE revision > $1 LIMIT $2`
	selectSomeOf  = `SELECT '', id, spec, version, created_at, updated_at FROM central.%s WHERE id = ANY ($2::text[]) AND '' = ANY ($1::text[])`
	selectSomeIn  = `SELECT tenant_id, id, spec, version, created_at, updated_at FROM central.%s
WHERE (tenant_id, id) IN (SELECT * FROM unnest($1::text[], $2::text[]))`
	selectSecretsOf = `SELECT tenant_id, client_id, id, sealed FROM central.client_secret
WHERE (tenant_id, client_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
ORDER BY tenant_id COLLATE "C", client_id COLLATE "C", created_at DESC, id DESC`
)

// advance returns the configuration: known, with what differs read anew.
func (r reader) advance(known *State) (*State, error) {
	if known == nil {
		return r.whole()
	}
	mark, refs, ok, err := r.changed(known.Mark)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return r.whole()
	case mark == known.Mark:
		return known, nil
	}
	snapshot, metas := *known.Snapshot, maps.Clone(known.Metas)
	snapshot.Revision = mark.Revision
	some := catalog.Snapshot{} // of what changed, what is there now
	someMetas := map[catalog.Ref]Meta{}
	if err := r.some(&some, someMetas, refs); err != nil {
		return nil, err
	}
	owned := map[string]bool{}
	for _, ref := range refs {
		if ref.Kind == KindKeys {
			snapshot.Keys = some.Keys
			continue
		}
		k, ok := catalog.KindOf(ref.Kind)
		if !ok {
			return nil, fmt.Errorf("%w: change of unknown kind %q", ErrDamaged, ref.Kind)
		}
		if !owned[k.Name] {
			owned[k.Name] = true
			k.Clone(&snapshot)
		}
		if e, exists := k.Find(&some, ref); exists {
			k.Put(&snapshot, e)
			metas[ref] = someMetas[ref]
		} else {
			k.Remove(&snapshot, ref)
			delete(metas, ref)
		}
	}
	return known.Next(mark, &snapshot, metas, refs), nil
}

// changed returns the current mark and what is newer than the known one; false
// where everything has to be read.
func (r reader) changed(known Mark) (mark Mark, refs []catalog.Ref, ok bool, err error) {
	b := &pgx.Batch{}
	b.Queue(selectMark).QueryRow(func(row pgx.Row) error { return row.Scan(&mark.Revision, &mark.Token) })
	b.Queue(selectKnown, known.Revision, known.Token).QueryRow(func(row pgx.Row) error { return row.Scan(&ok) })
	b.Queue(selectChanged, known.Revision, maxAdvance+1).Query(func(rows pgx.Rows) (err error) {
		refs, err = pgx.CollectRows(rows, pgx.RowToStructByPos[catalog.Ref])
		return err
	})
	if err := r.tx.SendBatch(r.ctx, b).Close(); err != nil {
		return Mark{}, nil, false, fmt.Errorf("read what changed: %w", err)
	}
	for i := range refs {
		if refs[i].Kind == KindKeys {
			refs[i] = catalog.Ref{Kind: KindKeys}
		}
	}
	ok = ok && len(refs) <= maxAdvance && !slices.ContainsFunc(refs, func(r catalog.Ref) bool { return r.Kind == kindAny })
	slices.SortFunc(refs, catalog.CompareRef)
	return mark, slices.Compact(refs), ok, nil
}

// some reads those of refs that exist.
func (r reader) some(s *catalog.Snapshot, metas map[catalog.Ref]Meta, refs []catalog.Ref) error {
	b := &pgx.Batch{}
	for kind := range slices.Values(kindsOf(refs)) {
		var tenants, ids []string
		for _, ref := range refs {
			if ref.Kind == kind {
				tenants, ids = append(tenants, ref.Tenant), append(ids, ref.ID)
			}
		}
		k, ok := catalog.KindOf(kind)
		switch {
		case kind == KindKeys:
			queueKeys(b, s)
			continue
		case !ok:
			continue // the caller refuses it
		case k.Global:
			queue(b, k, s, metas, fmt.Sprintf(selectSomeOf, kind), tenants, ids)
		default:
			queue(b, k, s, metas, fmt.Sprintf(selectSomeIn, kind), tenants, ids)
		}
		if kind == catalog.KindNameClient {
			b.Queue(selectSecretsOf, tenants, ids).Query(func(rows pgx.Rows) error { return readSecrets(rows, s.Clients) })
		}
	}
	if b.Len() == 0 {
		return nil
	}
	if err := r.tx.SendBatch(r.ctx, b).Close(); err != nil {
		return fmt.Errorf("read what changed: %w", err)
	}
	return nil
}

// kindsOf names the kinds of sorted references.
func kindsOf(refs []catalog.Ref) []string {
	var kinds []string
	for _, r := range refs {
		if n := len(kinds); n == 0 || kinds[n-1] != r.Kind {
			kinds = append(kinds, r.Kind)
		}
	}
	return kinds
}
