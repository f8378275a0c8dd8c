package request

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"versola/modules/central/openapi"
	"versola/platform/httpserver"
)

func context(target string, header http.Header) echo.Context {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.URL.RawQuery = target
	if header != nil {
		r.Header = header
	}
	return echo.New().NewContext(r, httptest.NewRecorder())
}

func status(err error) int {
	var p *httpserver.Problem
	if errors.As(err, &p) {
		return p.Status
	}
	return 0
}

// list is an operation whose query has parameters of each kind.
func list(t *testing.T, id string) openapi.Operation {
	t.Helper()
	operations, err := openapi.Operations()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(operations, func(op openapi.Operation) bool { return op.ID == id })
	if at < 0 {
		t.Fatalf("no operation %s", id)
	}
	return operations[at]
}

func TestDescribed_RefusesWhatTheDocumentDoesNotHave(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("я", 200)
	for id, queries := range map[string]map[string]bool{
		"list-clients": {
			"": false, "q=a": false, "q=": false, "q=a&limit=3": false, "q=a%3Bb": false, "&&q=a&": false, "q=" + long: false, "q=%25_.*": false,
			"q=%zz": true, "q=%": true, "%zz=a": true, "q=a;limit=3": true, "Q=a": true, "q=a&q=a": true, "q=a&%71=b": true, "=a": true, "q%00=a": true,
			strings.Repeat("x", 4000) + "=1": true, "q=%00": true, "q=%ff": true, "q=" + long + "a": true, "after=" + strings.Repeat("a", 1025): true,
			"limit=1": false, "limit=500": false, "limit=0": true, "limit=501": true, "limit=-1": true, "limit=": true, "limit=1.0": true, "limit=1e2": true,
			"limit=0x1": true, "limit=+1": true, "limit=%2B1": true, "limit=01": true, "limit=NaN": true, "limit=99999999999999999999": true, "limit=٣": true,
			"disabled=true": false, "disabled=yes": true, "disabled=": true, "client_kind=web": false, "client_kind=Web": true, "client_kind=": true,
		},
		"list-users": {"status=active": false, "status=gone": true, "created_from=2026-01-31T12:00:00Z": false, "created_from=2026-13-31T12:00:00Z": true,
			"created_from=yesterday": true, "created_before=0000-01-01T00:00:00Z": true},
		"delete-client": {"": false, "dry_run=true": true},
		"get-client":    {"": false, "limit=1": true},
	} {
		op := list(t, id)
		for query, refused := range queries {
			c := context(query, nil)
			reached := false
			err := Described(op)(func(echo.Context) error { reached = true; return nil })(c)
			if reached == refused || refused && status(err) != http.StatusBadRequest {
				t.Errorf("%s?%.60q: %v, %v", id, query, Parameters(c), err)
			}
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("%s?%.60q: an answer of %d bytes", id, query, len(err.Error()))
			}
		}
	}
}

func TestLimit_IsThatOfTheQueryOrTheUsual(t *testing.T) {
	t.Parallel()
	if got := Limit(map[string]string{"limit": "7"}, 5); got != 7 {
		t.Errorf("given: %d", got)
	}
	if got := Limit(nil, 5); got != 5 {
		t.Errorf("none: %d", got)
	}
}

func TestIfMatch_ComparesStrongly(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{
		`"7"`: 0, `*`: 0, ` "7" `: 0, `"6", "7"`: 0, `"6","7"`: 0, `"6",, "7"`: 0, `W/"6", "7"`: 0, `"a,b", "7"`: 0,
		`"6"`: 412, `W/"7"`: 412, `"07"`: 412, `""`: 412, `"*"`: 412,
		``: 400, `7`: 400, `"7`: 400, `7"`: 400, `W/*`: 400, `*, "7"`: 400, `"6", *`: 400, `w/"7"`: 400, `"6" "7"`: 400, `W/`: 400, `W/W/"7"`: 400, `**`: 400,
	} {
		expected, err := IfMatch(context("", http.Header{"If-Match": {value}}))
		if err == nil {
			err = expected.Check(7)
		}
		if status(err) != want {
			t.Errorf("%s: %v, want %d", value, err, want)
		}
	}
	if _, err := IfMatch(context("", http.Header{})); status(err) != http.StatusPreconditionRequired {
		t.Errorf("none: %v", err)
	}
	if expected, err := IfMatch(context("", http.Header{"If-Match": {`"6"`, `"7"`}})); err != nil || expected.Check(7) != nil {
		t.Errorf("two fields: %v", err)
	}
}

func TestNoneMatch_ComparesWeakly(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{`"7"`: true, `W/"7"`: true, `*`: true, `"6", W/"7"`: true, `"6"`: false, `7`: false, `W/*`: false, ``: false} {
		if got := NoneMatch(context("", http.Header{"If-None-Match": {value}}), `"7"`); got != want {
			t.Errorf("%s: %v", value, got)
		}
	}
}

// FuzzTags holds a list that is read to its own tags: joined, they are read as
// the same list.
func FuzzTags(f *testing.F) {
	for _, s := range []string{`"1"`, `W/"1", "2"`, `*`, `"1`, `W/`, `"a,b" ,, "c"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := tags([]string{text})
		if again := tags(got); !cmp.Equal(again, got) {
			t.Errorf("%q: %q and %q", text, got, again)
		}
	})
}
