package edge_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
)

func TestStream_InformationalAnswersAndTrailersPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	var early []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		early = append(early, http.StatusText(code)+" "+h.Get("Link"))
		if v := h["Set-Cookie"]; len(v) > 0 {
			t.Errorf("an early answer sets %q", v)
		}
		if v := h["X-Request-Id"]; len(v) != 1 || v[0] == "theirs" {
			t.Errorf("an early answer has request id %q", v)
		}
		return nil
	}})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL+"/resources/bank/files/hints", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+w.robot())
	res, err := noRedirects.Do(r)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	if len(early) != 1 || early[0] != "Early Hints </a.css>" {
		t.Errorf("early: %q", early)
	}
	if v := res.Header["X-Request-Id"]; len(v) != 1 || v[0] == "theirs" || len(res.Header["Set-Cookie"]) > 0 {
		t.Errorf("the answer has request id %q and sets %q", v, res.Header["Set-Cookie"])
	}
	if res.StatusCode != http.StatusTeapot || string(body) != "tea" || res.Trailer.Get("Checksum") != "abc" {
		t.Errorf("%d %q, trailer %v", res.StatusCode, body, res.Trailer)
	}
}

func TestMetadata_NamesTheIssuers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	twoTenants(w)
	e := w.edge()
	const path = "/.well-known/oauth-protected-resource/resources/"
	res := newBrowser(t).get(e.URL + path + "bank")
	if res.StatusCode != http.StatusOK || !strings.Contains(res.body, `"resource":"`+publicURL+`/resources/bank"`) ||
		!strings.Contains(res.body, `"authorization_servers":["`+issuer+`","`+issuer+`/t/other"]`) {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	if res := newBrowser(t).get(e.URL + path + "nothing"); res.StatusCode != http.StatusNotFound {
		t.Errorf("unknown: %d", res.StatusCode)
	}
	if got := newBrowser(t).get(e.URL + accounts).Header.Get("WWW-Authenticate"); !strings.Contains(got, `resource_metadata="`+publicURL+path+`bank"`) {
		t.Errorf("WWW-Authenticate is %q", got)
	}
}
