package request

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

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

func TestParameters_RefusesWhatWouldBeLeftOut(t *testing.T) {
	t.Parallel()
	for query, refused := range map[string]bool{
		"": false, "q=a": false, "q=": false, "q=a&limit=3": false, "q=%00": false, "q=a%3Bb": false, "&&q=a&": false,
		"q=%zz": true, "q=%": true, "%zz=a": true, "q=a;limit=3": true, "Q=a": true, "q=a&q=a": true, "q=a&%71=b": true, "=a": true, "q%00=a": true,
		strings.Repeat("x", 4000) + "=1": true,
	} {
		got, err := Parameters(context(query, nil), "q", "limit")
		if (err != nil) != refused || refused && status(err) != http.StatusBadRequest {
			t.Errorf("%.60q: %v, %v", query, got, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%.60q: an answer of %d bytes", query, len(err.Error()))
		}
	}
}

func TestLimit_IsANumberInItsBounds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"1": 1, "9": 9, "0": 0, "10": 0, "-1": 0, "": 0, "1.0": 0, "0x1": 0, " 1": 0, "99999999999999999999": 0, "٣": 0} {
		got, err := Limit(map[string]string{"limit": text}, 5, 9)
		if got != want || (want == 0) != (status(err) == http.StatusBadRequest) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	if got, err := Limit(nil, 5, 9); got != 5 || err != nil {
		t.Errorf("none: %d, %v", got, err)
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
