package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"versola/db"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/platform/clock"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func key(b byte) secret.Key {
	return secret.Key{ID: string(rune('a' + b)), Value: []byte(strings.Repeat(string(rune('a'+b)), secret.KeyBytes))}
}

func open(t testing.TB) (*audit.Log, *postgres.DB, *clock.Fake) {
	t.Helper()
	dbx, c := pgtest.Open(t, db.Central()), clock.NewFake(start)
	return logOf(t, dbx, c, key(0)), dbx, c
}

func logOf(t testing.TB, dbx *postgres.DB, c clock.Clock, keys ...secret.Key) *audit.Log {
	t.Helper()
	l, err := audit.New(audit.Deps{DB: dbx, Clock: c, Encryption: keys})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func event(action string) audit.Entry {
	return audit.Entry{Action: action, Actor: audit.Actor{Kind: audit.ActorUser, ID: "u1"}}
}

func write(t *testing.T, l *audit.Log, entries ...audit.Entry) {
	t.Helper()
	if err := l.Write(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, l *audit.Log, anchors ...audit.Anchor) *audit.Report {
	t.Helper()
	r, err := l.Verify(t.Context(), anchors...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAppend_ConcurrentWritersMakeOneWholeChain(t *testing.T) {
	t.Parallel()
	l, dbx, c := open(t)
	other := logOf(t, dbx, c, key(0)) // another process
	if r := verify(t, l); r.Broken != nil || r.Entries != 0 {
		t.Fatalf("an empty log: %+v", r)
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 10 {
				which := l
				if n%2 == 1 {
					which = other
				}
				if err := which.Write(t.Context(), event(fmt.Sprintf("test.%d", n)), event(fmt.Sprintf("test.%d.%d", n, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	r := verify(t, l)
	if r.Broken != nil || r.Entries != 160 || r.Head.Seq != 160 || r.First != 1 {
		t.Errorf("%+v", r)
	}
}

func TestAppend_RolledBackChangeLeavesNoTrace(t *testing.T) {
	t.Parallel()
	l, dbx, _ := open(t)
	write(t, l, event("test.one"))
	undo := errors.New("undo")
	err := pgx.BeginFunc(t.Context(), dbx, func(tx pgx.Tx) error {
		return errors.Join(l.Append(t.Context(), tx, event("test.lost")), undo)
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	write(t, l, event("test.two"))
	if r := verify(t, l); r.Broken != nil || r.Entries != 2 {
		t.Errorf("%+v", r)
	}
}

// without runs statements as someone who has switched the triggers off.
func without(t *testing.T, dbx *postgres.DB, statements ...string) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), dbx, func(tx pgx.Tx) error {
		for _, s := range append([]string{"SET LOCAL session_replication_role = replica"}, statements...) {
			if _, err := tx.Exec(t.Context(), s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const zeros = `decode(repeat('00', 32), 'hex')`

func TestVerify_NamesTheFirstBrokenEntry(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tamper []string
		seq    int64
	}{
		"body edited":             {[]string{`UPDATE central.audit_entry SET body = '{"at":"2026-05-01T12:00:00Z","action":"test.x","actor":{"kind":"user"}}' WHERE seq = 4`}, 4},
		"one space added":         {[]string{`UPDATE central.audit_entry SET body = (body::text || ' ')::json WHERE seq = 4`}, 4},
		"hash edited":             {[]string{`UPDATE central.audit_entry SET hash = ` + zeros + ` WHERE seq = 5`}, 5},
		"time edited":             {[]string{`UPDATE central.audit_entry SET at = at + interval '1 hour' WHERE seq = 3`}, 3},
		"first removed":           {[]string{`DELETE FROM central.audit_entry WHERE seq = 1`}, 1},
		"one removed":             {[]string{`DELETE FROM central.audit_entry WHERE seq = 6`}, 6},
		"one removed, renumbered": {[]string{`DELETE FROM central.audit_entry WHERE seq = 6`, `UPDATE central.audit_entry SET seq = seq - 1 WHERE seq > 6`}, 6},
		"two exchanged":           {[]string{`UPDATE central.audit_entry SET seq = CASE seq WHEN 4 THEN 105 ELSE 104 END WHERE seq IN (4, 5)`, `UPDATE central.audit_entry SET seq = seq - 100 WHERE seq > 100`}, 4},
		"last removed":            {[]string{`DELETE FROM central.audit_entry WHERE seq = 9`}, 9},
		"cut off with the head": {[]string{`DELETE FROM central.audit_entry WHERE seq > 5`,
			`UPDATE central.audit_head SET seq = 5, hash = (SELECT hash FROM central.audit_entry WHERE seq = 5)`}, 0},
		"all removed":             {[]string{`DELETE FROM central.audit_entry`}, 1},
		"begun later":             {[]string{`DELETE FROM central.audit_entry WHERE seq < 4`, `UPDATE central.audit_head SET base_seq = 3`}, 4},
		"head moved on":           {[]string{`UPDATE central.audit_head SET seq = 12`}, 10},
		"head moved back":         {[]string{`UPDATE central.audit_head SET seq = 8`}, 9},
		"head of another content": {[]string{`UPDATE central.audit_head SET hash = ` + zeros}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, dbx, _ := open(t)
			for i := range 9 {
				write(t, l, event(fmt.Sprintf("test.%d", i)))
			}
			if r := verify(t, l); r.Broken != nil {
				t.Fatalf("before: %+v", r.Broken)
			}
			without(t, dbx, tc.tamper...)
			r := verify(t, l)
			if r.Broken == nil || r.Broken.Seq != tc.seq {
				t.Errorf("found %+v, want entry %d", r.Broken, tc.seq)
			}
		})
	}
}

func TestVerify_AnchorProvesThatNothingUpToItWasRewritten(t *testing.T) {
	t.Parallel()
	l, dbx, c := open(t)
	write(t, l, event("test.1"), event("test.2"), event("test.3"))
	noted := verify(t, l).Head
	if back, err := audit.ParseAnchor(noted.String()); err != nil || back != noted {
		t.Fatalf("%v, %v", back, err)
	}
	if r := verify(t, l, noted); r.Broken != nil {
		t.Fatalf("untouched: %+v", r.Broken)
	}
	// Even with the keys, history cannot be written again.
	without(t, dbx, `DELETE FROM central.audit_entry`, `UPDATE central.audit_head SET seq = 0, hash = `+zeros+`, mac = ''`)
	if r := verify(t, l, noted); r.Broken == nil || r.Broken.Seq != 1 {
		t.Errorf("emptied: %+v", r.Broken)
	}
	again := logOf(t, dbx, c, key(0))
	write(t, again, event("test.1"), event("test.other"), event("test.3"))
	if r := verify(t, l); r.Broken != nil {
		t.Errorf("alone it is a whole chain: %+v", r.Broken)
	}
	if r := verify(t, l, noted); r.Broken == nil || r.Broken.Seq != 3 {
		t.Errorf("rewritten: %+v", r.Broken)
	}
	for _, bad := range []string{"", "1", "1:", ":ab", "-1:" + strings.Repeat("0", 64), "1:" + strings.Repeat("0", 63), "x:" + strings.Repeat("0", 64)} {
		if _, err := audit.ParseAnchor(bad); err == nil {
			t.Errorf("anchor %q was read", bad)
		}
	}
}

func TestVerify_HeadNeedsTheConfiguredKey(t *testing.T) {
	t.Parallel()
	l, dbx, c := open(t)
	write(t, l, event("test.1"))
	if r := verify(t, logOf(t, dbx, c, key(1), key(0))); r.Broken != nil {
		t.Errorf("with a new key before the old one: %+v", r.Broken)
	}
	if r := verify(t, logOf(t, dbx, c, key(1))); r.Broken == nil {
		t.Error("without the key it was written with")
	}
}

func TestDatabase_RefusesToChangeOrRemoveEntries(t *testing.T) {
	t.Parallel()
	l, dbx, _ := open(t)
	write(t, l, event("test.1"), event("test.2"))
	for _, s := range []string{
		`UPDATE central.audit_entry SET at = now()`, `DELETE FROM central.audit_entry`, `DELETE FROM central.audit_entry WHERE seq = 2`,
		`TRUNCATE central.audit_entry`, `DELETE FROM central.audit_head`, `TRUNCATE central.audit_head`,
		`UPDATE central.audit_head SET seq = 1`, `UPDATE central.audit_head SET base_seq = 3`,
		`INSERT INTO central.audit_head SELECT true, 9, hash, 0, hash, '' FROM central.audit_head`,
		`INSERT INTO central.audit_entry (seq, hash, body, at) SELECT seq, hash, body, at FROM central.audit_entry WHERE seq = 1`,
	} {
		if _, err := dbx.Exec(t.Context(), s); err == nil {
			t.Errorf("%s: was allowed", s)
		}
	}
	if r := verify(t, l); r.Broken != nil || r.Entries != 2 {
		t.Errorf("%+v", r)
	}
}

func TestRetain_RemovesTheOldestAndTheChainGoesOn(t *testing.T) {
	t.Parallel()
	l, _, c := open(t)
	by := audit.Actor{Kind: audit.ActorCommand, ID: "root"}
	write(t, l, event("test.1"), event("test.2"))
	c.Advance(time.Hour)
	write(t, l, event("test.3"))
	middle := verify(t, l).Head
	if n, err := l.Retain(t.Context(), start, by); n != 0 || err != nil {
		t.Fatalf("removed %d, %v", n, err)
	}
	if n, err := l.Retain(t.Context(), start.Add(time.Minute), by); n != 2 || err != nil {
		t.Fatalf("removed %d, %v", n, err)
	}
	write(t, l, event("test.4"))
	r := verify(t, l, middle)
	if r.Broken != nil || r.First != 3 || r.Entries != 3 || r.Head.Seq != 5 {
		t.Errorf("%+v", r)
	}
	c.Advance(time.Hour)
	if n, err := l.Retain(t.Context(), c.Now(), by); n != 2 || err != nil {
		t.Fatalf("removed %d, %v", n, err)
	}
	if r := verify(t, l); r.Broken != nil || r.First != 5 || r.Entries != 2 {
		t.Errorf("the newest stays: %+v", r)
	}
}

func TestPage_FiltersAndPages(t *testing.T) {
	t.Parallel()
	l, _, c := open(t)
	mine := audit.Entry{Action: "sign_in.failed", Actor: audit.Actor{Kind: audit.ActorUser, ID: "u1", Tenant: "a"}, Tenant: "a", User: "u1", Address: "10.0.0.1", RequestID: "r1"}
	theirs := mine
	theirs.Tenant = "b" // an equal id in another tenant
	write(t, l, mine, theirs)
	c.Advance(time.Minute)
	write(t, l,
		audit.Entry{Action: "client.updated", Actor: audit.Actor{Kind: audit.ActorUser, ID: "admin"}, Object: &audit.Object{Kind: "client", Tenant: "a", ID: "web"}},
		audit.Entry{Action: "client_x.updated", Actor: audit.Actor{Kind: audit.ActorUser, ID: "admin"}, Object: &audit.Object{Kind: "scope", Tenant: "a", ID: "web"}})
	for name, tc := range map[string]struct {
		f    audit.Filter
		want []int64
	}{
		"all":             {audit.Filter{}, []int64{4, 3, 2, 1}},
		"from":            {audit.Filter{From: start.Add(time.Second)}, []int64{4, 3}},
		"to is exclusive": {audit.Filter{To: start.Add(time.Minute)}, []int64{2, 1}},
		"action":          {audit.Filter{Action: "client.updated"}, []int64{3}},
		"action prefix":   {audit.Filter{Action: "client."}, []int64{3}},
		"no wildcards":    {audit.Filter{Action: "client%."}, nil},
		"no underscores":  {audit.Filter{Action: "client_."}, nil},
		"tenant":          {audit.Filter{Tenant: "a"}, []int64{4, 3, 1}},
		"user of tenant":  {audit.Filter{Tenant: "b", User: "u1"}, []int64{2}},
		"actor":           {audit.Filter{Actor: "admin"}, []int64{4, 3}},
		"object":          {audit.Filter{ObjectKind: "client", ObjectID: "web"}, []int64{3}},
		"request":         {audit.Filter{RequestID: "r1"}, []int64{2, 1}},
		"injection":       {audit.Filter{Actor: `' OR '1'='1`}, nil},
	} {
		page, err := l.Page(t.Context(), tc.f, 0, 10)
		if diff := cmp.Diff(tc.want, numbers(page)); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		var exported []int64
		err = l.Export(t.Context(), tc.f, func(s audit.Stored) error { exported = append([]int64{s.Seq}, exported...); return nil })
		if diff := cmp.Diff(tc.want, exported); err != nil || diff != "" {
			t.Errorf("%s, exported: %v %s", name, err, diff)
		}
	}
	first, _ := l.Page(t.Context(), audit.Filter{}, 0, 3)
	second, err := l.Page(t.Context(), audit.Filter{}, first[2].Seq, 3)
	if diff := cmp.Diff([]int64{1}, numbers(second)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := l.Entry(t.Context(), audit.Filter{Tenant: "b"}, 1); !errors.Is(err, audit.ErrNotFound) {
		t.Errorf("another tenant's entry: %v", err)
	}
	raw, err := json.Marshal(first[2])
	var back struct {
		Seq    int64  `json:"seq"`
		Hash   string `json:"hash"`
		Action string `json:"action"`
	}
	if err != nil || json.Unmarshal(raw, &back) != nil || back.Seq != 2 || len(back.Hash) != 64 || back.Action != "sign_in.failed" {
		t.Errorf("%s, %v", raw, err)
	}
}

func numbers(page []audit.Stored) []int64 {
	var out []int64
	for _, s := range page {
		out = append(out, s.Seq)
	}
	return out
}

func TestAppend_HoldsHostileTexts(t *testing.T) {
	t.Parallel()
	l, _, _ := open(t)
	for name, text := range map[string]string{
		"NUL": "a\x00b", "invalid UTF-8": "a\xff\xfeb", "long": strings.Repeat("x", 1<<20), "long multibyte": strings.Repeat("ж", 1<<20), "quotes": `"}'; DROP TABLE x; --\u0000`, "newline": "a\nb",
	} {
		write(t, l, audit.Entry{Action: "test." + text, Actor: audit.Actor{Kind: audit.ActorUnknown, ID: text}, User: text, Address: text,
			Object: &audit.Object{Kind: text, Tenant: text, ID: text}, Detail: map[string]string{text: text},
			Changes: []audit.FieldChange{{Pointer: "/x", Before: map[string]any{text: text}, After: []any{text}}}})
		page, err := l.Page(t.Context(), audit.Filter{}, 0, 1)
		if err != nil || !json.Valid(page[0].Body) || len(page[0].Body) > 64<<10 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r := verify(t, l); r.Broken != nil {
		t.Errorf("%+v", r.Broken)
	}
}

func TestRecord_KeepsTheDifferenceOfAChange(t *testing.T) {
	t.Parallel()
	l, dbx, _ := open(t)
	err := pgx.BeginFunc(t.Context(), dbx, func(tx pgx.Tx) error {
		return l.Record(t.Context(), tx, []change.Event{{
			Actor: change.Actor{Kind: "user", Tenant: "system", ID: "u9", Address: "192.0.2.1", RequestID: "r9"}, At: start, Revision: 7,
			Action: change.Updated, Ref: catalog.Ref{Kind: catalog.KindNameClient, Tenant: "a", ID: "web"},
			Before: json.RawMessage(`{"id":"web","name":"Old"}`), After: json.RawMessage(`{"id":"web","name":"New"}`),
		}, {
			Actor: change.System("apply"), At: start, Action: change.Created, Ref: catalog.Ref{Kind: catalog.KindNameTenant, ID: "a"}, After: json.RawMessage(`{"id":"a"}`),
		}})
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := l.Page(t.Context(), audit.Filter{Tenant: "a"}, 0, 10)
	if err != nil || len(page) != 2 {
		t.Fatalf("%d, %v", len(page), err)
	}
	want := `{"at":"2026-05-01T12:00:00Z","action":"client.updated","actor":{"kind":"user","id":"u9","tenant":"system"},"object":{"kind":"client","tenant":"a","id":"web"},` +
		`"tenant":"a","address":"192.0.2.1","request_id":"r9","changes":[{"pointer":"/name","before":"Old","after":"New"}],"detail":{"revision":"7"}}`
	if diff := cmp.Diff(want, string(page[1].Body)); diff != "" {
		t.Error(diff)
	}
}
