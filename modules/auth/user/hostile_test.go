package user_test

import (
	"crypto/rand"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"versola/db"
	"versola/modules/auth/user"
	"versola/platform/pgtest"
)

// hostileLines are single lines of an import and what becomes of them: "" is
// created, else the beginning of the first problem.
var hostileLines = map[string]string{ //nolint:gochecknoglobals // a table
	`{"email":"a@x.example","claims":{"n":9007199254740992,"f":0.1,"e":1e3,"z":-0.0}}`: "",
	`{"email":"a@x.example","claims":{"n":9007199254740993}}`:                          "/claims/n: ",
	`{"email":"a@x.example","claims":{"n":123456789012345678901234567890}}`:            "/claims/n: ",
	`{"email":"a@x.example","claims":{"n":[1,{"m":1e400}]}}`:                           "/claims/n: ",
	`{"email":"a@x.example","claims":{"n":-1e400}}`:                                    "/claims/n: ",
	`{"email":"a@x.example","claims":{"n":1e-400}}`:                                    "/claims/n: ",
	`{"email":"a@x.example","claims":{"name":"\ud800x"}}`:                              "/claims/name: ",
	`{"email":"a@x.example","claims":{"name":"\ud83d\ude00"}}`:                         "",
	`{"email":"a@x.example","claims":{"nick":"` + "\xff" + `"}}`:                       ": is not UTF-8",
	`{"email":"` + "a\xff" + `@x.example"}`:                                            ": is not UTF-8",
	`{"email":"\udfffa@x.example"}`:                                                    "/email: ",
	`{"username":"\udfff"}`:                                                            "/username: ",
	`{"email":"a@x.example","external_id":"\ud800"}`:                                   "/external_id: ",
	`{"email":"a@x.example","roles":{"\ud800":["x"]}}`:                                 "/roles/",
	`{"id":"no uuid","email":"a@x.example"}`:                                           "/id: cannot be read: ",
	`{"id":7,"email":"a@x.example"}`:                                                   "/id: ",
	`{"created_at":"yesterday","email":"a@x.example"}`:                                 "/created_at: ",
	`{"email":"a@x.example"}` + "\x00":                                                 ": there is something behind",
	`null`:                                                                             ": a person needs",
}

func TestImport_HostileLines(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	s := user.NewStore(d, rand.Reader)
	for line, want := range hostileLines {
		summary, reports := run(t, s, "demo", strings.NewReader(line+"\n"))
		switch {
		case want == "" && summary.Created != 1, want != "" && summary.Failed != 1:
			t.Errorf("%s: %+v %v", line, summary, reports)
		case want != "" && !strings.HasPrefix(reports[0], "1 failed "+want):
			t.Errorf("%s: %s, want %s", line, reports[0], want)
		}
		if _, err := d.Exec(t.Context(), `DELETE FROM auth.users`); err != nil {
			t.Fatal(err)
		}
	}
}

func TestImport_TakesFilesAsEditorsWriteThem(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	s := user.NewStore(d, rand.Reader)
	for what, text := range map[string]string{
		"a byte order mark":       "\xef\xbb\xbf" + `{"email":"a@x.example"}` + "\n" + `{"email":"b@x.example"}` + "\n",
		"line ends of Windows":    `{"email":"a@x.example"}` + "\r\n\r\n" + `{"email":"b@x.example"}` + "\r\n",
		"blank lines":             "\n  \n" + `{"email":"a@x.example"}` + "\n\t\n" + `{"email":"b@x.example"}` + "\n\n",
		"no end of the last line": `{"email":"a@x.example"}` + "\n" + `{"email":"b@x.example"}`,
		"an indented line":        "\t" + `{ "email" : "a@x.example" }` + "\n" + `{"email":"b@x.example"}`,
	} {
		if summary, reports := run(t, s, "demo", strings.NewReader(text)); summary.Created != 2 || summary.Lines != 2 {
			t.Errorf("%s: %+v %v", what, summary, reports)
		}
		if _, err := d.Exec(t.Context(), `DELETE FROM auth.users`); err != nil {
			t.Fatal(err)
		}
	}
	// A mark in the middle is no mark.
	if _, reports := run(t, s, "demo", strings.NewReader(`{"email":"a@x.example"}`+"\n\xef\xbb\xbf"+`{"email":"b@x.example"}`)); len(reports) != 1 {
		t.Errorf("%v", reports)
	}
}

func TestImport_OneEnormousLineFailsAlone(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	text := `{"email":"big@x.example","claims":{"name":"` + strings.Repeat("a", 10<<20) + `"}}` + "\n" + `{"email":"after@x.example"}` + "\n" + `{"email":"cut@x.ex`
	summary, reports := run(t, user.NewStore(d, rand.Reader), "demo", strings.NewReader(text))
	if summary.Created != 1 || summary.Failed != 2 || !strings.HasPrefix(reports[0], "1 failed : the line has more than") || !strings.HasPrefix(reports[1], "3 failed ") {
		t.Errorf("%+v %v", summary, reports)
	}
}

func TestProblems_NumbersOfEveryReaderAreBounded(t *testing.T) {
	t.Parallel()
	for value, good := range map[any]bool{
		1 << 53: true, 1<<53 + 1: false, -1<<53 - 1: false, uint64(1 << 53): true, uint64(math.MaxUint64): false, 0.5: true, math.Inf(1): false, math.NaN(): false,
		1e300: false, json.Number("1e3"): true, json.Number("9007199254740993"): false, json.Number("-9007199254740992"): true, json.Number("0e999"): true,
	} {
		n := user.New{Username: "ann", Now: now, Claims: map[string]any{"n": value}}
		if problems := n.Problems(); (len(problems) == 0) != good {
			t.Errorf("%v: %v", value, problems)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for line := range hostileLines {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var d user.Document
		if len(user.Decode(raw, &d)) > 0 {
			return
		}
		n, problems := d.New("demo", now, adopt)
		if len(problems) > 0 {
			return
		}
		for _, text := range []string{n.Phone, n.Email, n.Username, n.ExternalID} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\r\n\ufffd") {
				t.Errorf("%q of %q", text, raw)
			}
		}
		b, err := json.Marshal(n.Claims)
		var back map[string]any
		if err != nil || json.Unmarshal(b, &back) != nil {
			t.Errorf("claims of %q cannot be read back: %v", raw, err)
		}
	})
}
