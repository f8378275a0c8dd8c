package user

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"versola/platform/id"
)

// Filter says which people of a directory are listed. The zero value: all.
type Filter struct {
	// Query is the beginning of a phone number, e-mail address, username, name,
	// external id or id (eight digits at least). Letter case does not matter.
	Query         string
	Status        Status
	Tenant, Role  string // who has the role in the tenant; both or neither
	CreatedFrom   time.Time
	CreatedBefore time.Time
}

// Page is a part of a list.
type Page struct {
	Users []*User
	Next  string // where the next page begins; "": this is the last
	// Total is how many there are in all pages; where Estimated, it is what the
	// database's statistics say, because counting would take too long.
	Total     int64
	Estimated bool
}

// Bounds of lists.
const (
	// MaxPage is the most people in a page.
	MaxPage = 500
	// MaxQuery bounds what is searched for, in bytes: no identifier is longer.
	MaxQuery = maxInput
	// countUpTo is how many are counted one by one, which takes a few
	// milliseconds; above, the total is estimated.
	countUpTo = 1000
	// minIDQuery keeps a search by id to people of about the same minute: ids
	// begin with the time.
	minIDQuery = 8
	maxCursor  = 4096
)

// Errors of lists.
var (
	// ErrCursor: not where a page of this list begins.
	ErrCursor = errors.New("not the \"next\" of a page of this list")
	// ErrQuery: over-long, or not text.
	ErrQuery = fmt.Errorf("a query has at most %d bytes of text", MaxQuery)
)

// cursor is where a page begins. In a search, Branch is the index of the branch
// and Key the last key in it; in a list, At the time of creation.
type cursor struct {
	Branch int       `json:"b,omitempty"`
	Key    string    `json:"k,omitempty"`
	At     time.Time `json:"a,omitzero"`
	ID     id.UUID   `json:"i,omitzero"`
}

func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("encode cursor: %v", err)) // plain values always encode
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(text string, branches int) (*cursor, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // the first page has no cursor
	}
	c := &cursor{}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if len(text) > maxCursor || err != nil || json.Unmarshal(b, c) != nil || c.Branch < 0 || c.Branch >= max(branches, 1) ||
		c.At.IsZero() != (branches > 0) || !utf8.ValidString(c.Key) || strings.ContainsRune(c.Key, 0) {
		return nil, ErrCursor
	}
	return c, nil
}

// statement is a WHERE clause that grows.
type statement struct {
	where []string
	args  []any
}

// and adds a condition, in which each ? stands for the next value.
func (s *statement) and(condition string, values ...any) {
	for _, v := range values {
		s.args = append(s.args, v)
		condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(s.args)), 1)
	}
	s.where = append(s.where, condition)
}

func (s *statement) clone() *statement {
	return &statement{append([]string(nil), s.where...), append([]any(nil), s.args...)}
}

func (s *statement) sql(selected, tail string) string {
	return "SELECT " + selected + " FROM auth.users WHERE " + strings.Join(s.where, " AND ") + " " + tail
}

// base has the conditions of a filter without its query. Values are text with a
// cast: the statements are planned for their values (see List), and pgx does
// not ask the server for types then.
func base(directory string, f Filter) *statement {
	s := &statement{}
	s.and("directory = ?", directory)
	if f.Status != "" {
		// Written out, so that the planner sees the partial index.
		if f.Status == Disabled {
			s.and("status = 'disabled'")
		} else {
			s.and("status = 'active'")
		}
	}
	if f.Tenant != "" {
		s.and("roles @> jsonb_build_object(?::text, jsonb_build_array(?::text))", f.Tenant, f.Role)
	}
	if !f.CreatedFrom.IsZero() {
		s.and("created_at >= ?::timestamptz", f.CreatedFrom.Format(time.RFC3339Nano))
	}
	if !f.CreatedBefore.IsZero() {
		s.and("created_at < ?::timestamptz", f.CreatedBefore.Format(time.RFC3339Nano))
	}
	return s
}

// branch is one way to search: by the beginning of one thing.
type branch struct {
	key    string // the expression whose beginning is looked at, as its index has it
	prefix string
	unique bool // in a directory
	byID   bool
}

// last is the greatest character: everything that begins with a prefix is
// between the prefix and the prefix with it behind.
const last = "\U0010FFFF"

// match adds the condition of the branch.
func (b branch) match(s *statement) {
	if b.byID {
		low, high := idRange(b.prefix)
		s.and("id BETWEEN ?::uuid AND ?::uuid", low, high)
		return
	}
	value := "?::text"
	if strings.HasPrefix(b.key, "lower(") {
		value = "lower(?::text)" // as the database folds letters
	}
	s.and(b.key+" ~>=~ "+value+" AND "+b.key+" ~<=~ ("+value+" || '"+last+"')", b.prefix, b.prefix)
}

// exclude leaves out what the branch finds.
func (b branch) exclude(s *statement) {
	other := &statement{args: s.args}
	b.match(other)
	s.args = other.args
	s.where = append(s.where, "("+strings.Join(other.where, " AND ")+") IS NOT TRUE")
}

// from continues after a person.
func (b branch) from(s *statement, c *cursor) {
	switch {
	case b.byID:
		s.and("id > ?::uuid", c.ID.String())
	case b.unique:
		s.and(b.key+" ~>~ ?::text", c.Key)
	default:
		s.and(b.key+" ~>=~ ?::text AND ("+b.key+" ~>~ ?::text OR id > ?::uuid)", c.Key, c.Key, c.ID.String())
	}
}

func (b branch) order() string {
	switch {
	case b.byID:
		return "ORDER BY id"
	case b.unique:
		return "ORDER BY " + b.key + " USING ~<~"
	}
	return "ORDER BY " + b.key + " USING ~<~, id"
}

// branches returns what a query may be the beginning of.
func branches(query string) []branch {
	query = strings.TrimSpace(query)
	var out []branch
	if digits, ok := phonePrefix(query); ok {
		out = append(out, branch{key: "phone", prefix: digits, unique: true})
	}
	if idPrefix(query) {
		out = append(out, branch{byID: true, prefix: query})
	}
	out = append(out, branch{key: "lower(email)", prefix: query, unique: true})
	if !strings.Contains(query, "@") {
		out = append(out, branch{key: "lower(username)", prefix: query, unique: true}, branch{key: "lower(claims ->> 'name')", prefix: query})
	}
	return append(out, branch{key: "external_id", prefix: query, unique: true})
}

// phonePrefix reads the beginning of a phone number, with or without "+".
func phonePrefix(query string) (string, bool) {
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -().+", r) {
			return -1
		}
		return r
	}, query)
	if digits == "" || strings.Trim(digits, "0123456789") != "" || len(digits) > maxPhoneDigits || strings.LastIndexByte(query, '+') > 0 {
		return "", false
	}
	return "+" + digits, true
}

const uuidForm = "00000000-0000-0000-0000-000000000000"

func idPrefix(query string) bool {
	if len(query) < minIDQuery || len(query) > len(uuidForm) {
		return false
	}
	low, _ := idRange(query)
	_, err := id.ParseUUID(low)
	return err == nil
}

// idRange completes the beginning of an id to the lowest and the highest id
// that begin so.
func idRange(prefix string) (low, high string) {
	rest := uuidForm[len(prefix):]
	return prefix + rest, prefix + strings.ReplaceAll(rest, "0", "f")
}

// List returns a page of the people of a directory: with a query, the matches
// by phone number first, then by id, e-mail address, username, name and
// external id, each in order; else the newest first. after is the "next" of the
// page before. Errors: [ErrCursor], [ErrQuery].
func (s *Store) List(ctx context.Context, directory string, f Filter, limit int, after string) (*Page, error) {
	if len(f.Query) > MaxQuery || !utf8.ValidString(f.Query) || strings.ContainsFunc(f.Query, unicode.IsControl) {
		return nil, ErrQuery
	}
	limit = min(max(limit, 1), MaxPage)
	var ways []branch
	if strings.TrimSpace(f.Query) != "" {
		ways = branches(f.Query)
	}
	c, err := parseCursor(after, len(ways))
	if err != nil {
		return nil, err
	}
	page := &Page{Users: []*User{}}
	if len(ways) == 0 {
		err = s.newest(ctx, page, base(directory, f), limit, c)
	} else {
		err = s.search(ctx, page, base(directory, f), ways, limit, c)
	}
	if err != nil {
		return nil, err
	}
	return page, nil
}

func (s *Store) newest(ctx context.Context, page *Page, all *statement, limit int, c *cursor) error {
	if err := s.count(ctx, page, all); err != nil {
		return err
	}
	q := all.clone()
	if c != nil {
		q.and("(created_at, id) < (?::timestamptz, ?::uuid)", c.At.Format(time.RFC3339Nano), c.ID.String())
	}
	if err := s.collect(ctx, page, q, "ORDER BY created_at DESC, id DESC", "''", limit+1, nil); err != nil {
		return err
	}
	if len(page.Users) > limit {
		page.Users = page.Users[:limit]
		last := page.Users[limit-1]
		page.Next = cursor{At: last.CreatedAt.UTC(), ID: last.ID}.String()
	}
	return nil
}

func (s *Store) search(ctx context.Context, page *Page, filter *statement, ways []branch, limit int, c *cursor) error {
	type place struct {
		branch int
		key    string
	}
	var places []place
	for i, way := range ways {
		matches := filter.clone()
		way.match(matches)
		for _, earlier := range ways[:i] {
			earlier.exclude(matches)
		}
		if err := s.count(ctx, page, matches); err != nil {
			return err
		}
		if len(page.Users) > limit || c != nil && i < c.Branch {
			continue
		}
		if c != nil && i == c.Branch {
			way.from(matches, c)
		}
		key := way.key
		if way.byID {
			key = "''"
		}
		if err := s.collect(ctx, page, matches, way.order(), key, limit+1-len(page.Users), func(key string) {
			places = append(places, place{i, key})
		}); err != nil {
			return err
		}
	}
	if len(page.Users) > limit {
		page.Users = page.Users[:limit]
		end := places[limit-1]
		page.Next = cursor{Branch: end.branch, Key: end.key, ID: page.Users[limit-1].ID}.String()
	}
	return nil
}

// collect appends people to a page. The statement is planned for its values
// (QueryExecModeExec), not once for all: which index serves best depends on how
// common a role or a beginning is.
func (s *Store) collect(ctx context.Context, page *Page, q *statement, order, key string, limit int, each func(key string)) error {
	rows, err := s.db.Query(ctx, q.sql(columns+", "+key, fmt.Sprintf("%s LIMIT %d", order, limit)), append([]any{pgx.QueryExecModeExec}, q.args...)...)
	if err != nil {
		return fmt.Errorf("list users: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		u, key := &User{}, ""
		if err := rows.Scan(append(u.targets(), &key)...); err != nil {
			return fmt.Errorf("list users: %w", err)
		}
		page.Users = append(page.Users, u)
		if each != nil {
			each(key)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("list users: %w", err)
	}
	return nil
}

// count adds to a page's total.
func (s *Store) count(ctx context.Context, page *Page, q *statement) error {
	args := append([]any{pgx.QueryExecModeExec}, q.args...)
	var n int64
	err := s.db.QueryRow(ctx, "SELECT count(*) FROM ("+q.sql("", fmt.Sprintf("LIMIT %d", countUpTo+1))+") AS counted", args...).Scan(&n)
	if err != nil {
		return fmt.Errorf("count users: %w", err)
	}
	if n > countUpTo {
		var plan []struct {
			Plan struct {
				Rows float64 `json:"Plan Rows"`
			}
		}
		var raw []byte
		if err := s.db.QueryRow(ctx, "EXPLAIN (FORMAT JSON) "+q.sql("", ""), args...).Scan(&raw); err != nil {
			return fmt.Errorf("estimate users: %w", err)
		}
		if err := json.Unmarshal(raw, &plan); err != nil {
			return fmt.Errorf("read estimate: %w", err)
		}
		page.Estimated = true
		for _, p := range plan {
			n = max(n, int64(p.Plan.Rows))
		}
	}
	page.Total += n
	return nil
}
