package user_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"versola/db"
	"versola/modules/auth/user"
	"versola/platform/id"
	"versola/platform/pgtest"
)

func adopt(hash string) (string, error) {
	if !strings.HasPrefix(hash, "$2b$") {
		return "", errors.New("not a hash")
	}
	return "imported:" + hash, nil
}

// run imports text and returns the summary and a line of text for each report.
func run(t *testing.T, s *user.Store, directory string, r io.Reader) (user.Summary, []string) {
	t.Helper()
	var reports []string
	summary, err := s.Import(t.Context(), r, user.ImportOptions{Directory: directory, Now: func() time.Time { return now }, Adopt: adopt,
		Report: func(l user.Line) {
			text := fmt.Sprintf("%d %s", l.Number, l.Outcome)
			for _, p := range l.Errors {
				text += " " + p.Pointer + ": " + p.Detail
			}
			reports = append(reports, text)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return summary, reports
}

func TestImport_CreatesEveryGoodLineAndReportsTheOthers(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	s := user.NewStore(d, rand.Reader)
	lines := []string{
		`{"external_id":"a-1","phone":"+7 700 000-00-01","email":"ann@example.com","claims":{"name":"Ann"},"roles":{"demo":["customer"]},"password_hash":"$2b$04$x","created_at":"2020-01-02T03:04:05Z"}`,
		``,
		`{"email":"BEN@example.com","email_verified":true,"status":"disabled"}`,
		`{"email":"ben@example.com"}`,                   // 4: the same person
		`{"external_id":"a-1","phone":"+77000000009"}`,  // 5: the same external id
		`{"external_id":"a-2","phone":"+77000000001"}`,  // 6: another's phone
		`{"phone":"8700","email":"x","username":"a b"}`, // 7
		`not json`,                                                   // 8
		`{"phone":"+77000000003","admin":true}`,                      // 9
		`{"phone":"+77000000003","phone":"+77000000004"}`,            // 10
		`{"phone":"+77000000003"} {"phone":"+77000000004"}`,          // 11
		`{"phone":"+77000000003","password_hash":"plain"}`,           // 12
		`{"phone":"+77000000003","claims":{"sub":"x","a":"\u0000"}}`, // 13
		`{"phone":7}`,   // 14
		`{"claims":{}}`, // 15
		`[]`,            // 16
		`{"claims":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 41),     // 17
		`{"phone":"+77000000003","claims":{"a":"` + strings.Repeat("x", 70000) + `"}}`, // 18
		`{"phone":"+77000000003","external_id":"\u0000"}`,                              // 19
		`{"id":"01234567-89ab-7fff-bfff-ffffffffffff","username":"zed"}`,               // 20
		`{"id":"01234567-89ab-7fff-bfff-ffffffffffff","username":"other"}`,             // 21
		`{"phone":"+77000000001","email":"ben@example.com"}`,                           // 22: two people's
		`{"username":"last"}`,
	}
	summary, reports := run(t, s, "demo", strings.NewReader(strings.Join(lines, "\n")))
	if diff := cmp.Diff(user.Summary{Lines: 22, Created: 4, Skipped: 3, Failed: 15}, summary); diff != "" {
		t.Error(diff)
	}
	want := []string{"4 skipped", "5 skipped", "6 failed /phone: is someone else's",
		"7 failed /phone: " + user.ErrPhone.Error() + " /email: " + user.ErrEmail.Error() + " /username: " + user.ErrUsername.Error(),
		"8 failed", "9 failed", "10 failed /phone: stands there twice", "11 failed", "12 failed /password_hash: not a hash", "13 failed /claims/a",
		"14 failed /phone: is of the wrong type", "15 failed", "16 failed", "17 failed /claims/a", "18 failed", "19 failed /external_id", "21 skipped",
		"22 failed /phone: is someone else's /email: is someone else's"}
	if len(reports) != len(want) {
		t.Fatalf("%d reports, want %d:\n%s", len(reports), len(want), strings.Join(reports, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(reports[i], want[i]) {
			t.Errorf("%q, want %q", reports[i], want[i])
		}
	}
	ann, err := s.Find(t.Context(), "demo", user.Identifier{Kind: user.KindPhone, Value: "+77000000001"})
	if err != nil || ann.ExternalID != "a-1" || ann.Claims["name"] != "Ann" || ann.Roles["demo"][0] != "customer" || ann.CreatedAt.Year() != 2020 {
		t.Errorf("%+v, %v", ann, err)
	}
	factors, err := s.Factors(t.Context(), ann.ID)
	if err != nil || len(factors) != 1 || !factors[0].Imported || factors[0].ID != user.FactorPassword {
		t.Errorf("%+v, %v", factors, err)
	}
	if ben, err := s.Find(t.Context(), "demo", user.Identifier{Kind: user.KindEmail, Value: "ben@example.com"}); err != nil || ben.Status != user.Disabled || !ben.EmailVerified {
		t.Errorf("%+v, %v", ben, err)
	}
}

func TestImport_SendingTheSameAgainChangesNothingAlsoInAnotherDirectory(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	s := user.NewStore(d, rand.Reader)
	var lines strings.Builder
	const n = 4500 // more than two batches
	for i := range n {
		fmt.Fprintf(&lines, `{"external_id":"e%d","phone":"+7700%07d","email":"p%d@example.com"}`+"\n", i, i, i)
	}
	first, _ := run(t, s, "demo", strings.NewReader(lines.String()))
	again, _ := run(t, s, "demo", strings.NewReader(lines.String()))
	other, _ := run(t, s, "other", strings.NewReader(lines.String()))
	if diff := cmp.Diff([]user.Summary{{Lines: n, Created: n}, {Lines: n, Skipped: n}, {Lines: n, Created: n}}, []user.Summary{first, again, other}); diff != "" {
		t.Error(diff)
	}
	// An id is one person's in the whole deployment.
	u, err := s.Find(t.Context(), "demo", user.Identifier{Kind: user.KindEmail, Value: "p7@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	_, reports := run(t, s, "other", strings.NewReader(`{"id":"`+u.ID.String()+`","username":"x"}`))
	if diff := cmp.Diff([]string{"1 failed /id: is someone else's"}, reports); diff != "" {
		t.Error(diff)
	}
}

func TestImport_WhatBreaksOffIsResumedWhereItStopped(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	s := user.NewStore(d, rand.Reader)
	var lines strings.Builder
	const n = 3000
	for i := range n {
		fmt.Fprintf(&lines, `{"phone":"+7700%07d"}`+"\n", i)
	}
	broken := errors.New("connection reset")
	summary, err := s.Import(t.Context(), io.MultiReader(strings.NewReader(lines.String()[:60000]), failing{broken}),
		user.ImportOptions{Directory: "demo", Now: func() time.Time { return now }, Adopt: adopt})
	if !errors.Is(err, broken) || summary.Created == 0 || summary.Created >= n {
		t.Fatalf("%+v, %v", summary, err)
	}
	resumed, reports := run(t, s, "demo", strings.NewReader(lines.String()))
	if resumed.Created+resumed.Skipped != n || resumed.Skipped != summary.Created || int64(len(reports)) != resumed.Skipped {
		t.Errorf("first %+v, then %+v", summary, resumed)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestImport_AFailureToRecordImportsNothingOfTheBatch(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	s := user.NewStore(d, rand.Reader)
	refused := errors.New("refused")
	_, err := s.Import(t.Context(), strings.NewReader(`{"username":"a"}`), user.ImportOptions{Directory: "demo", Now: func() time.Time { return now },
		Adopt: adopt, Record: func(context.Context, pgx.Tx, []id.UUID) error { return refused }})
	if !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if _, err := s.Find(t.Context(), "demo", user.Identifier{Kind: user.KindUsername, Value: "a"}); !errors.Is(err, user.ErrNotFound) {
		t.Errorf("the person is there: %v", err)
	}
}

func BenchmarkImport(b *testing.B) {
	d := pgtest.Open(b, db.Auth())
	s := user.NewStore(d, rand.Reader)
	n := 0
	for b.Loop() {
		r, w := io.Pipe()
		from := n
		n += 20000
		go func() {
			for i := from; i < n; i++ {
				fmt.Fprintf(w, `{"external_id":"e%d","phone":"+7%010d","email":"person%d@example.com","claims":{"name":"Person Number %d","locale":"ru"},"roles":{"demo":["customer"]},"password_hash":"$2b$04$8jLHUi350Tf8bkfT0blfx.APDFJbfY6p8j7lfFzPiW/xorWMAEQIm"}`+"\n", i, i, i, i)
			}
			w.Close()
		}()
		summary, err := s.Import(b.Context(), r, user.ImportOptions{Directory: "demo", Now: func() time.Time { return now }, Adopt: adopt})
		if err != nil || summary.Created != 20000 {
			b.Fatalf("%+v, %v", summary, err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Minutes(), "users/min")
}
