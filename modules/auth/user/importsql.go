package user

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/platform/id"
)

// importSQL creates those people of a batch whose identifiers are free, in the
// order of the lines, and returns their ids.
const importSQL = `WITH input AS (
	SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::text[], $7::boolean[], $8::text[], $9::text[], $10::text[],
		$11::timestamptz[], $12::text[]) WITH ORDINALITY
		AS i (id, external_id, status, phone, phone_verified, email, email_verified, username, claims, roles, created_at, hash, line)
), inserted AS (
	INSERT INTO auth.users (id, directory, external_id, status, phone, phone_verified, email, email_verified, username, claims, roles, created_at, updated_at)
	SELECT id, $13, nullif(external_id, ''), status, nullif(phone, ''), phone_verified, nullif(email, ''), email_verified, nullif(username, ''),
		claims::jsonb, roles::jsonb, created_at, $14 FROM input ORDER BY line
	ON CONFLICT DO NOTHING
	RETURNING id
), passwords AS (
	INSERT INTO auth.password (user_id, temporary, hash, changed_at) SELECT i.id, false, i.hash, $14 FROM input i JOIN inserted USING (id) WHERE i.hash <> ''
)
SELECT id FROM inserted`

// presentSQL tells who has the identifiers of lines that created nobody.
const presentSQL = `SELECT k.id, k.directory = $6, e.id, p.id, m.id, n.id
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS i (id, external_id, phone, email, username, line)
	LEFT JOIN auth.users k ON k.id = i.id
	LEFT JOIN auth.users e ON e.directory = $6 AND e.external_id = nullif(i.external_id, '')
	LEFT JOIN auth.users p ON p.directory = $6 AND p.phone = nullif(i.phone, '')
	LEFT JOIN auth.users m ON m.directory = $6 AND lower(m.email) = lower(nullif(i.email, ''))
	LEFT JOIN auth.users n ON n.directory = $6 AND lower(n.username) = lower(nullif(i.username, ''))
ORDER BY i.line`

// columnar holds people as the arrays that the statements take.
type columnar struct {
	ids                                                               []id.UUID
	created                                                           []time.Time
	external, status, phone, email, username, claims, roles, password []string
	phoneVerified, emailVerified                                      []bool
}

// write creates the people of the batch and settles the other lines. It may run
// again after its transaction was rolled back.
func (im *importer) write(ctx context.Context, tx pgx.Tx) error {
	var c columnar
	byID := map[id.UUID]*importLine{}
	var open, repeated []*importLine
	for i := range im.lines {
		l := &im.lines[i]
		switch {
		case l.person.ID.IsNil(): // did not read
			continue
		case byID[l.person.ID] != nil:
			repeated = append(repeated, l)
			continue
		}
		l.result = nil
		byID[l.person.ID] = l
		open = append(open, l)
		c.add(l)
	}
	if len(open) == 0 {
		return nil
	}
	now := im.o.Now()
	rows, err := tx.Query(ctx, importSQL, c.ids, c.external, c.status, c.phone, c.phoneVerified, c.email, c.emailVerified, c.username, c.claims, c.roles,
		c.created, c.password, im.o.Directory, now)
	if err != nil {
		return fmt.Errorf("import users: %w", err)
	}
	created, err := pgx.CollectRows(rows, pgx.RowTo[id.UUID])
	if err != nil {
		return fmt.Errorf("import users: %w", err)
	}
	for _, u := range created {
		delete(byID, u)
	}
	var rest []*importLine
	for _, l := range open {
		if byID[l.person.ID] != nil {
			rest = append(rest, l)
		}
	}
	if err := im.settle(ctx, tx, append(rest, repeated...)); err != nil {
		return err
	}
	if im.o.Record != nil && len(created) > 0 {
		return im.o.Record(ctx, tx, created)
	}
	return nil
}

func (c *columnar) add(l *importLine) {
	n := &l.person
	status, created := Active, n.CreatedAt
	if n.Disabled {
		status = Disabled
	}
	if created.IsZero() {
		created = n.Now
	}
	c.ids, c.created = append(c.ids, n.ID), append(c.created, created.Truncate(time.Microsecond))
	c.external, c.status, c.phone = append(c.external, n.ExternalID), append(c.status, string(status)), append(c.phone, n.Phone)
	c.email, c.username = append(c.email, n.Email), append(c.username, n.Username)
	c.claims, c.roles, c.password = append(c.claims, l.claims), append(c.roles, l.roles), append(c.password, n.PasswordHash)
	c.phoneVerified, c.emailVerified = append(c.phoneVerified, n.PhoneVerified), append(c.emailVerified, n.EmailVerified)
}

// settle says of lines that created nobody why.
func (im *importer) settle(ctx context.Context, tx pgx.Tx, lines []*importLine) error {
	if len(lines) == 0 {
		return nil
	}
	var c columnar
	for _, l := range lines {
		c.add(l)
	}
	rows, err := tx.Query(ctx, presentSQL, c.ids, c.external, c.phone, c.email, c.username, im.o.Directory)
	if err != nil {
		return fmt.Errorf("look for imported users: %w", err)
	}
	defer rows.Close()
	for i := 0; rows.Next(); i++ {
		var here *bool
		var p present
		if err := rows.Scan(&p.id, &here, &p.external, &p.phone, &p.email, &p.username); err != nil {
			return fmt.Errorf("look for imported users: %w", err)
		}
		p.here = here != nil && *here
		lines[i].result = p.settle(lines[i])
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("look for imported users: %w", err)
	}
	return nil
}

// present is who has the identifiers of a line; nil UUIDs: nobody.
type present struct {
	id, external, phone, email, username id.UUID
	here                                 bool // whoever has the id is of the same directory
}

// settle decides whether a line's person is there already, or whether somebody
// else is in the way. An id of the line's own decides; else the identifiers do,
// when all are one person's.
func (p present) settle(l *importLine) *Line {
	skipped := func(u id.UUID) *Line { return &Line{Number: l.number, Outcome: LineSkipped, User: &u} }
	switch {
	case !p.external.IsNil():
		return skipped(p.external)
	case l.named && !p.id.IsNil() && p.here:
		return skipped(p.id)
	}
	failed := &Line{Number: l.number, Outcome: LineFailed}
	if l.named && !p.id.IsNil() {
		failed.Errors = append(failed.Errors, Problem{"/id", "is someone else's"})
	}
	var who id.UUID
	one := !l.named && l.person.ExternalID == ""
	for _, f := range []struct {
		pointer string
		given   string
		owner   id.UUID
	}{{"/phone", l.person.Phone, p.phone}, {"/email", l.person.Email, p.email}, {"/username", l.person.Username, p.username}} {
		if f.owner.IsNil() {
			one = one && f.given == ""
			continue
		}
		one = one && (who.IsNil() || who == f.owner)
		who = f.owner
		failed.Errors = append(failed.Errors, Problem{f.pointer, "is someone else's"})
	}
	if one && !who.IsNil() {
		return skipped(who)
	}
	if len(failed.Errors) == 0 {
		failed.Errors = []Problem{{"", "somebody in its way was changed at the same moment; send it again"}}
	}
	return failed
}
