package client

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/auth/oauth"
)

// params reads parameters as an endpoint does.
func params(t testing.TB, v url.Values) oauth.Params {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(v.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	p, err := oauth.ReadForm(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func FuzzReadAssertion(f *testing.F) {
	for _, seed := range []string{
		"", ".", "a.b.c", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJhIiwic3ViIjoiYSJ9.", "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJhIiwic3ViIjoiYSJ9.AAAA",
		"eyJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJhIiwic3ViIjoiYSJ9.AAAA", "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJhIiwic3ViIjoiYiJ9.AAAA",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := readAssertion(params(t, url.Values{"client_assertion_type": {AssertionType}, "client_assertion": {raw}}))
		if err != nil {
			if e, ok := oauth.AsError(err); !ok || e.HTTPStatus() >= http.StatusInternalServerError || got.id != "" {
				t.Errorf("%q: %v, client %q", raw, err, got.id)
			}
			return
		}
		if got.id == "" || got.assertion == nil || got.secret != "" || len(raw) > maxAssertion {
			t.Errorf("%q was read as %+v", raw, got)
		}
		if _, err := lifetime(got.assertion.claims, time.Unix(1e9, 0)); err == nil && got.assertion.claims["exp"] == nil {
			t.Errorf("%q lives without exp", raw)
		}
	})
}
