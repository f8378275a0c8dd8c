package user

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"versola/platform/id"
)

// Bounds of imports.
const (
	// maxLine leaves room for the largest person ([New.Problems]).
	maxLine = 64 << 10
	// importBatch is how many people are one transaction: large enough that
	// round trips and commits do not count, small enough to stay far below the
	// limit of a statement's time.
	importBatch = 2000
	// importRetries is how often a batch is tried that lost against another
	// import (a deadlock over the same identifiers).
	importRetries = 3
)

// byteOrderMark is what some editors begin a file with; it says nothing.
const byteOrderMark = "\ufeff"

// Document describes a person, as the administration API and imports have it.
type Document struct {
	ID            *id.UUID            `json:"id,omitempty"`
	ExternalID    string              `json:"external_id,omitempty"`
	Status        Status              `json:"status,omitempty"` // default: active
	Phone         string              `json:"phone,omitempty"`
	PhoneVerified bool                `json:"phone_verified,omitempty"`
	Email         string              `json:"email,omitempty"`
	EmailVerified bool                `json:"email_verified,omitempty"`
	Username      string              `json:"username,omitempty"`
	Claims        map[string]any      `json:"claims,omitempty"`
	Roles         map[string][]string `json:"roles,omitempty"`
	CreatedAt     time.Time           `json:"created_at,omitzero"`
	// PasswordHash is one that another system made, see password.Adopt.
	PasswordHash string `json:"password_hash,omitempty"`
}

// New checks a document and returns what it describes. adopt turns a foreign
// password hash into the form that is kept, see password.Adopt.
func (d *Document) New(directory string, now time.Time, adopt func(string) (string, error)) (New, []Problem) {
	n := New{Directory: directory, ExternalID: d.ExternalID, Phone: d.Phone, PhoneVerified: d.PhoneVerified, Email: d.Email, EmailVerified: d.EmailVerified,
		Username: d.Username, Disabled: d.Status == Disabled, Claims: d.Claims, Roles: d.Roles, CreatedAt: d.CreatedAt, Now: now}
	problems := n.Problems()
	if d.ID != nil {
		if n.ID = *d.ID; n.ID.IsNil() {
			problems = append(problems, Problem{"/id", "is the nil UUID"})
		}
	}
	if d.Status != "" && d.Status != Active && d.Status != Disabled {
		problems = append(problems, Problem{"/status", "is active or disabled"})
	}
	if d.PasswordHash != "" {
		var err error
		if n.PasswordHash, err = adopt(d.PasswordHash); err != nil {
			problems = append(problems, Problem{"/password_hash", err.Error()})
		}
	}
	return n, problems
}

// ImportOptions say how an import goes.
type ImportOptions struct {
	Directory string
	Now       func() time.Time
	// Adopt turns a foreign password hash into the form that is kept.
	Adopt func(hash string) (string, error)
	// Check tells what else is wrong with a person: roles that do not exist, or
	// that the importer may not give.
	Check func(n *New) []Problem
	// Record, where given, is called in each batch's transaction, before its
	// end, with the ids of who was created.
	Record func(ctx context.Context, tx pgx.Tx, created []id.UUID) error
	// Report is told of every line that did not create a person, in the order of
	// lines.
	Report func(Line)
}

// Outcomes of a line.
const (
	LineSkipped = "skipped" // the person is there already
	LineFailed  = "failed"
)

// Line is what became of a line that did not create a person.
type Line struct {
	Number  int64     `json:"line"` // from 1
	Outcome string    `json:"outcome"`
	User    *id.UUID  `json:"id,omitempty"` // who is there already
	Errors  []Problem `json:"errors,omitempty"`
}

// Summary counts an import's lines.
type Summary struct {
	Lines   int64 `json:"lines"`
	Created int64 `json:"created"`
	Skipped int64 `json:"skipped"`
	Failed  int64 `json:"failed"`
}

// Import creates people from lines of JSON (see [Document]), as many at a time
// as are one transaction. A line that is wrong fails alone. What was imported is
// kept when the import breaks off: sending the same again skips who is there
// already, by external id or id, else by the identifiers, and changes nothing
// about them. The error is the reader's or the database's, and the summary is
// then of the lines that are settled.
func (s *Store) Import(ctx context.Context, r io.Reader, o ImportOptions) (Summary, error) {
	in := bufio.NewReaderSize(r, maxLine+1)
	if mark, err := in.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark)) // what was peeked at is there
	}
	im := &importer{store: s, o: o}
	for number := int64(1); ; number++ {
		raw, long, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return im.summary, errors.Join(err, im.flush(ctx))
		}
		switch {
		case long:
			im.fail(number, Problem{"", fmt.Sprintf("the line has more than %d bytes", maxLine)})
		case len(bytes.TrimSpace(raw)) > 0:
			im.add(number, raw)
		}
		if len(im.lines) >= importBatch || err != nil {
			if flushErr := im.flush(ctx); flushErr != nil {
				return im.summary, flushErr
			}
		}
		if err != nil {
			return im.summary, nil
		}
	}
}

// readLine returns a line without its end; long: it was too long and was left
// out. At the end of the input the error is io.EOF, with the last line.
func readLine(in *bufio.Reader) (raw []byte, long bool, err error) {
	raw, err = in.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		_, err = in.ReadSlice('\n')
	}
	return raw, long, err
}

// importer collects a batch.
type importer struct {
	store   *Store
	o       ImportOptions
	summary Summary
	lines   []importLine // in order
}

// importLine is one line of a batch.
type importLine struct {
	number int64
	person New
	named  bool // the line gives an id of its own
	claims string
	roles  string
	result *Line // settled already
}

func (im *importer) fail(number int64, problems ...Problem) {
	im.lines = append(im.lines, importLine{number: number, result: &Line{Number: number, Outcome: LineFailed, Errors: problems}})
}

func (im *importer) add(number int64, raw []byte) {
	var d Document
	if problems := Decode(raw, &d); problems != nil {
		im.fail(number, problems...)
		return
	}
	n, problems := d.New(im.o.Directory, im.o.Now(), im.o.Adopt)
	if im.o.Check != nil {
		problems = append(problems, im.o.Check(&n)...)
	}
	if len(problems) > 0 {
		im.fail(number, problems...)
		return
	}
	l := importLine{number: number, person: n, named: d.ID != nil}
	if !l.named {
		l.person.ID = id.NewUUID(n.Now, im.store.random)
	}
	claims, err := json.Marshal(orEmpty(n.Claims))
	if err != nil {
		im.fail(number, Problem{"/claims", "cannot be kept"})
		return
	}
	roles, err := json.Marshal(orEmpty(n.Roles))
	if err != nil {
		im.fail(number, Problem{"/roles", "cannot be kept"})
		return
	}
	l.claims, l.roles = string(claims), string(roles)
	im.lines = append(im.lines, l)
}

// flush writes the batch and reports its lines.
func (im *importer) flush(ctx context.Context) error {
	if len(im.lines) == 0 {
		return nil
	}
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, im.store.db, func(tx pgx.Tx) error { return im.write(ctx, tx) })
		var pg *pgconn.PgError
		if err == nil {
			break
		}
		if !errors.As(err, &pg) || pg.Code != "40P01" || try == importRetries { // deadlock_detected
			return err
		}
	}
	for i := range im.lines {
		im.summary.Lines++
		l := im.lines[i].result
		switch {
		case l == nil:
			im.summary.Created++
			continue
		case l.Outcome == LineSkipped:
			im.summary.Skipped++
		default:
			im.summary.Failed++
		}
		if im.o.Report != nil {
			im.o.Report(*l)
		}
	}
	im.lines = im.lines[:0]
	return nil
}
