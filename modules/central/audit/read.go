package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotFound reports that there is no such entry.
var ErrNotFound = errors.New("no such audit entry")

// Filter says which entries are wanted; empty members do not restrict.
type Filter struct {
	From, To time.Time // To is exclusive
	// Action is one action, or a prefix that ends with ".": "client.".
	Action string
	Actor  string // the actor's id
	Tenant string // the tenant that it concerns
	// Within restricts to tenants, whatever else is asked for; nil: to none.
	Within     []string
	User       string // the person that it concerns
	ObjectKind string
	ObjectID   string // with ObjectKind
	RequestID  string // together with another filter: it is not indexed
}

// Stored is an entry of the log.
type Stored struct {
	Anchor
	At   time.Time
	Body json.RawMessage
}

// MarshalJSON returns the body with "seq" and "hash" before its members.
func (s Stored) MarshalJSON() ([]byte, error) {
	head, err := json.Marshal(struct {
		Seq  int64  `json:"seq"`
		Hash string `json:"hash"`
	}{s.Seq, fmt.Sprintf("%x", s.Hash[:])})
	if err != nil || len(s.Body) < 2 || s.Body[0] != '{' {
		return nil, fmt.Errorf("encode audit entry %d: %w", s.Seq, errors.Join(err, errors.ErrUnsupported))
	}
	return append(append(head[:len(head)-1], ','), s.Body[1:]...), nil
}

// Page returns up to limit entries, newest first, older than number before (0:
// from the newest).
func (l *Log) Page(ctx context.Context, f Filter, before int64, limit int) ([]Stored, error) {
	where, args := f.where()
	if before > 0 {
		args = append(args, before)
		where += fmt.Sprintf(" AND seq < $%d", len(args))
	}
	args = append(args, limit)
	return l.read(ctx, fmt.Sprintf(selectEntries+"%s ORDER BY seq DESC LIMIT $%d", where, len(args)), args)
}

// exportPage is how many entries an export holds in memory: at most 64 MiB,
// about one in practice.
const exportPage = 1000

// Export calls yield for every entry that is there when it begins, oldest
// first.
func (l *Log) Export(ctx context.Context, f Filter, yield func(Stored) error) error {
	var last int64
	if err := l.db.QueryRow(ctx, `SELECT seq FROM central.audit_head`).Scan(&last); err != nil {
		return fmt.Errorf("read head of audit log: %w", err)
	}
	where, args := f.where()
	statement := fmt.Sprintf(selectEntries+"%s AND seq > $%d AND seq <= $%d ORDER BY seq LIMIT %d", where, len(args)+1, len(args)+2, exportPage)
	for after := int64(0); ; {
		page, err := l.read(ctx, statement, append(args[:len(args):len(args)], after, last))
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := yield(e); err != nil {
				return err
			}
			after = e.Seq
		}
		if len(page) < exportPage {
			return nil
		}
	}
}

// Entry returns one entry, as far as the filter allows it. Errors: [ErrNotFound].
func (l *Log) Entry(ctx context.Context, f Filter, seq int64) (Stored, error) {
	where, args := f.where()
	list, err := l.read(ctx, fmt.Sprintf(selectEntries+"%s AND seq = $%d", where, len(args)+1), append(args, seq))
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Stored{}, err
	}
	return list[0], nil
}

const selectEntries = `SELECT seq, hash, at, body FROM central.audit_entry WHERE true`

func (l *Log) read(ctx context.Context, statement string, args []any) ([]Stored, error) {
	rows, err := l.db.Query(ctx, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Stored, err error) {
		var hash []byte
		if err := row.Scan(&s.Seq, &hash, &s.At, (*[]byte)(&s.Body)); err != nil {
			return s, err
		}
		copy(s.Hash[:], hash)
		return s, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	return list, nil
}

// where returns the conditions, each of them a parameter.
func (f Filter) where() (string, []any) {
	var where strings.Builder
	var args []any
	add := func(condition string, arg any) {
		args = append(args, arg)
		fmt.Fprintf(&where, " AND "+condition, len(args))
	}
	if !f.From.IsZero() {
		add("at >= $%d", f.From)
	}
	if !f.To.IsZero() {
		add("at < $%d", f.To)
	}
	if strings.HasSuffix(f.Action, ".") {
		add(`action LIKE $%d`, strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(f.Action)+"%")
	} else if f.Action != "" {
		add("action = $%d", f.Action)
	}
	for _, c := range [...]struct{ condition, value string }{
		{"actor_id = $%d", f.Actor}, {"tenant_id = $%d", f.Tenant}, {"user_id = $%d", f.User},
		{"object_kind = $%d", f.ObjectKind}, {"object_id = $%d", f.ObjectID}, {"body->>'request_id' = $%d", f.RequestID},
	} {
		if c.value != "" {
			add(c.condition, c.value)
		}
	}
	if f.Within != nil {
		add("tenant_id = ANY($%d)", f.Within)
	}
	return where.String(), args
}
