package change

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/catalog"
	"versola/modules/central/store"
	"versola/modules/central/validate"
	"versola/platform/id"
	"versola/platform/jose"
	"versola/platform/secret"
)

// plan is the configuration as it will be.
type plan struct {
	engine  *Engine
	before  *View
	next    *catalog.Snapshot // shares the lists of the kinds that are not in owned
	owned   map[string]bool
	touched []catalog.Ref // in the order of the operations, each once
	seen    map[catalog.Ref]bool
	put     map[catalog.Ref]bool
	secrets map[catalog.Ref][]NewSecret
	// problems are those that the operations have by themselves.
	problems []validate.Problem
}

func newPlan(e *Engine, before *View) *plan {
	next := *before.Snapshot
	return &plan{engine: e, before: before, next: &next, owned: map[string]bool{}, seen: map[catalog.Ref]bool{}, put: map[catalog.Ref]bool{}, secrets: map[catalog.Ref][]NewSecret{}}
}

// own makes the list of a kind the plan's to change.
func (p *plan) own(k *catalog.Kind) {
	if !p.owned[k.Name] {
		p.owned[k.Name] = true
		k.Clone(p.next)
	}
}

func (p *plan) do(op Op) error {
	r := op.target()
	k, ok := catalog.KindOf(r.Kind)
	if !ok {
		return fmt.Errorf("kind %q: %w", r.Kind, ErrNotFound)
	}
	if !p.seen[r] {
		p.seen[r] = true
		p.touched = append(p.touched, r)
	}
	p.own(k)
	switch o := op.(type) {
	case Put:
		return p.replace(k, o)
	case Delete:
		return p.remove(k, o)
	case AddSecret:
		return p.addSecret(o)
	case DropSecret:
		return p.dropSecret(o)
	case SetSecrets:
		return p.setSecrets(o)
	}
	return fmt.Errorf("%T is no operation", op)
}

func (p *plan) problem(of catalog.Ref, field string, err error) {
	p.problems = append(p.problems, validate.Problem{Of: of, Field: field, Message: err.Error()})
}

// version refuses an operation that expects another version.
func (p *plan) version(r catalog.Ref, exists bool, want int64) error {
	switch {
	case want == 0:
		return nil
	case !exists:
		return ErrNotFound
	case p.before.Metas[r].Version != want:
		return ErrConflict
	}
	return nil
}

func (p *plan) replace(k *catalog.Kind, o Put) error {
	r := o.Spec.Ref()
	was, exists := k.Find(p.next, r)
	if exists && o.CreateOnly {
		return ErrExists
	}
	if err := p.version(r, exists, o.IfVersion); err != nil {
		return err
	}
	p.put[r] = true
	spec := o.Spec
	if c, ok := spec.(*catalog.ClientSpec); ok {
		own := *c
		own.Secrets = nil
		if exists && own.AuthMethod != catalog.AuthNone {
			own.Secrets = was.(*catalog.ClientSpec).Secrets //nolint:errcheck,forcetypeassert // of the same kind
		}
		spec = &own
	}
	k.Put(p.next, spec)
	return nil
}

func (p *plan) remove(k *catalog.Kind, o Delete) error {
	_, exists := k.Find(p.next, o.Ref)
	if !exists {
		return ErrNotFound
	}
	if err := p.version(o.Ref, exists, o.IfVersion); err != nil {
		return err
	}
	delete(p.put, o.Ref)
	k.Remove(p.next, o.Ref)
	return nil
}

// client returns a pointer into next's own list.
func (p *plan) client(r catalog.Ref, ifVersion int64) (*catalog.ClientSpec, error) {
	k, _ := catalog.KindOf(catalog.KindNameClient)
	e, exists := k.Find(p.next, r)
	if !exists {
		return nil, ErrNotFound
	}
	if err := p.version(r, exists, ifVersion); err != nil {
		return nil, err
	}
	p.put[r] = true
	return e.(*catalog.ClientSpec), nil //nolint:errcheck,forcetypeassert // the kind's type
}

// seal makes a secret of a client.
func (p *plan) seal(r catalog.Ref, plain secret.Text) (catalog.SealedSecret, NewSecret) {
	e := p.engine
	s := catalog.SealedSecret{ID: id.NewUUID(e.Clock.Now(), e.Random)}
	s.Sealed = e.keyring.Seal([]byte(plain.Reveal()), catalog.ClientSecretContext(r.Tenant, r.ID, s.ID))
	return s, NewSecret{ID: s.ID, Plain: plain}
}

func (p *plan) addSecret(o AddSecret) error {
	c, err := p.client(o.Client, o.IfVersion)
	if err != nil {
		return err
	}
	plain := o.Plain
	if plain.Empty() {
		plain = secret.Text(id.NewHandle(p.engine.Random))
	}
	if err := validate.Secret(plain.Reveal()); err != nil {
		p.problem(o.Client, "secret", err)
		return nil
	}
	sealed, made := p.seal(o.Client, plain)
	c.Secrets = append([]catalog.SealedSecret{sealed}, c.Secrets...)
	p.secrets[o.Client] = append([]NewSecret{made}, p.secrets[o.Client]...)
	return nil
}

func (p *plan) dropSecret(o DropSecret) error {
	c, err := p.client(o.Client, o.IfVersion)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(c.Secrets, func(s catalog.SealedSecret) bool { return s.ID == o.ID })
	if at < 0 {
		return fmt.Errorf("secret %s: %w", o.ID, ErrNotFound)
	}
	c.Secrets = slices.Delete(slices.Clone(c.Secrets), at, at+1)
	return nil
}

func (p *plan) setSecrets(o SetSecrets) error {
	c, err := p.client(o.Client, 0)
	if err != nil {
		return err
	}
	if o.IfNone && len(c.Secrets) > 0 || p.sameSecrets(o.Client, c.Secrets, o.Plain) {
		return nil
	}
	c.Secrets, p.secrets[o.Client] = nil, nil
	for i, plain := range o.Plain {
		if err := validate.Secret(plain.Reveal()); err != nil {
			field := "secret"
			if len(o.Plain) > 1 {
				field = fmt.Sprintf("secrets[%d]", i)
			}
			p.problem(o.Client, field, err)
		}
		sealed, made := p.seal(o.Client, plain)
		c.Secrets = append(c.Secrets, sealed)
		p.secrets[o.Client] = append(p.secrets[o.Client], made)
	}
	return nil
}

// assertionSecrets finds secrets that are too short for a client of
// client_secret_jwt: no assertion would verify with them. A secret that does not
// open is no more use either way.
func (p *plan) assertionSecrets() {
	for i := range p.next.Clients {
		c := &p.next.Clients[i]
		if c.AuthMethod != catalog.AuthSecretJWT || !p.put[c.Ref()] {
			continue
		}
		for _, sealed := range c.Secrets {
			plain, err := p.engine.keyring.Open(sealed.Sealed, catalog.ClientSecretContext(c.Tenant, c.ID, sealed.ID))
			if err == nil && len(plain) < jose.MinSecret {
				p.problem(c.Ref(), "secret", fmt.Errorf("must have at least %d characters for client_secret_jwt (RFC 7518 section 3.2)", jose.MinSecret))
				break
			}
		}
	}
}

// sameSecrets compares what is stored with what is wanted. A secret that does
// not open is another.
func (p *plan) sameSecrets(r catalog.Ref, stored []catalog.SealedSecret, want []secret.Text) bool {
	if len(stored) != len(want) {
		return false
	}
	for i, sealed := range stored {
		plain, err := p.engine.keyring.Open(sealed.Sealed, catalog.ClientSecretContext(r.Tenant, r.ID, sealed.ID))
		if err != nil || !secret.Equal(plain, []byte(want[i].Reveal())) {
			return false
		}
	}
	return true
}

// changes compares next with what was before.
func (p *plan) changes() []Change {
	out := make([]Change, len(p.touched))
	for i, r := range p.touched {
		c := Change{Ref: r, Action: Unchanged, Version: p.before.Metas[r].Version, NewSecrets: p.secrets[r]}
		k, _ := catalog.KindOf(r.Kind)
		was, had := k.Find(p.before.Snapshot, r)
		is, has := k.Find(p.next, r)
		var before, after map[string]any
		if had {
			c.Before, before = redacted(was)
		}
		if has {
			c.After, after = redacted(is)
		}
		switch {
		case !had && has:
			c.Action = Created
		case had && !has:
			c.Action = Deleted
		case had && has:
			if c.Fields = differences(before, after); len(c.Fields) > 0 {
				c.Action = Updated
			}
		}
		out[i] = c
	}
	return out
}

// redacted returns the JSON form of an entity without secrets, and the same
// as a tree.
func redacted(e catalog.Entity) (json.RawMessage, map[string]any) {
	tree := members(e)
	if c, ok := e.(*catalog.ClientSpec); ok {
		delete(tree, "secrets")
		if len(c.Secrets) > 0 {
			ids := make([]any, len(c.Secrets))
			for i, s := range c.Secrets {
				ids[i] = s.ID.String()
			}
			tree["secrets"] = ids
		}
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, tree // it was decoded from JSON
	}
	return raw, tree
}

func members(v any) map[string]any {
	out := map[string]any{}
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		// Only a malformed raw member cannot be encoded, which validation
		// reports.
		out["?"] = err.Error()
	}
	return out
}

// differences names the members whose JSON differs. JSON is what is stored,
// and the database keeps its meaning, not its bytes.
func differences(before, after map[string]any) []string {
	var names []string
	for name, v := range after {
		if old, had := before[name]; !had || !reflect.DeepEqual(old, v) {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (p *plan) differs(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Action != Unchanged })
}

// check refuses what must not be committed.
func (p *plan) check(changes []Change) error {
	if err := p.unused(changes); err != nil {
		return err
	}
	p.assertionSecrets()
	problems := p.problems
	for _, c := range changes {
		if c.Action != Updated || c.Ref.Kind != catalog.KindNameTenant {
			continue
		}
		k, _ := catalog.KindOf(c.Ref.Kind)
		was, _ := k.Find(p.before.Snapshot, c.Ref)
		is, _ := k.Find(p.next, c.Ref)
		problems = append(problems, validate.Fixed(was, is)...)
	}
	// What is wrong elsewhere counts only when these operations make it so.
	tenants := p.tenants()
	known := map[validate.Problem]bool{}
	for _, problem := range p.engine.Rules.Part(p.before.Snapshot, tenants) {
		known[problem] = true
	}
	for _, problem := range p.engine.Rules.Part(p.next, tenants) {
		if p.put[problem.Of] || !known[problem] {
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		return &Invalid{Problems: problems}
	}
	return nil
}

// tenants are those that the operations are about.
func (p *plan) tenants() map[string]bool {
	out := map[string]bool{}
	for _, r := range p.touched {
		switch {
		case r.Tenant != "":
			out[r.Tenant] = true
		case r.Kind == catalog.KindNameTenant:
			out[r.ID] = true
		}
	}
	return out
}

// unused refuses to delete what is referred to by what stays.
func (p *plan) unused(changes []Change) error {
	var uses map[catalog.Ref][]Use
	for _, c := range changes {
		if c.Action != Deleted {
			continue
		}
		if uses == nil {
			uses = usesOf(p.next)
		}
		if by := uses[c.Ref]; len(by) > 0 {
			return &InUse{Ref: c.Ref, By: by}
		}
	}
	return nil
}

// write stores what differs, what is referred to first, and makes sure that
// the result compiles.
func (p *plan) write(ctx context.Context, tx pgx.Tx, changes []Change) (*View, error) {
	if _, err := p.engine.compiler.Compile(p.next); err != nil {
		return nil, fmt.Errorf("check the new configuration: %w", err)
	}
	mark, err := store.Touch(ctx, tx)
	if err != nil {
		return nil, err
	}
	revision := mark.Revision
	var differ []catalog.Ref
	for _, c := range changes {
		if c.Action != Unchanged {
			differ = append(differ, c.Ref)
		}
	}
	w := store.Writes{Version: revision, Now: p.engine.Clock.Now()}
	metas := maps.Clone(p.before.Metas)
	for _, k := range catalog.Kinds {
		for i := range changes {
			if c := &changes[i]; c.Ref.Kind == k.Name && c.Action != Unchanged && c.Action != Deleted {
				if err := p.store(&w, k, c); err != nil {
					return nil, err
				}
				m := store.Meta{Version: revision, Created: w.Now, Updated: w.Now}
				if c.Action == Updated {
					m.Created = metas[c.Ref].Created
				}
				metas[c.Ref], c.Version = m, revision
			}
		}
	}
	for _, k := range slices.Backward(catalog.Kinds) {
		for i := range changes {
			if c := &changes[i]; c.Ref.Kind == k.Name && c.Action == Deleted {
				w.Delete(k, c.Ref)
				delete(metas, c.Ref)
				c.Version = revision
			}
		}
	}
	if err := w.Send(ctx, tx); err != nil {
		return nil, err
	}
	p.next.Revision = revision
	return NewView(p.before.Next(mark, p.next, metas, differ)), nil
}

func (p *plan) store(w *store.Writes, k *catalog.Kind, c *Change) error {
	e, _ := k.Find(p.next, c.Ref)
	if err := w.Put(k, e); err != nil {
		return err
	}
	if client, ok := e.(*catalog.ClientSpec); ok && (c.Action == Created || slices.Contains(c.Fields, "secrets")) {
		w.PutSecrets(c.Ref, client.Secrets)
	}
	return nil
}
