package edge_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// fakeUpstream is an API that answers with what reached it.
type fakeUpstream struct {
	*httptest.Server
	gone chan struct{} // a held call was cancelled
	next chan struct{} // lets a stream go on
}

type reached struct {
	Method string              `json:"method"`
	Target string              `json:"target"`
	Host   string              `json:"host"`
	Header map[string][]string `json:"header"`
	Body   string              `json:"body"`
}

func newFakeUpstream(t testing.TB) *fakeUpstream {
	u := &fakeUpstream{gone: make(chan struct{}, 1), next: make(chan struct{})}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

func (u *fakeUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	flush := func() { _ = http.NewResponseController(w).Flush() }
	switch r.URL.Path {
	case "/stream":
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			flush()
			select {
			case <-u.next:
			case <-r.Context().Done():
				return
			}
		}
		return
	case "/files/hints":
		w.Header().Set("Link", "</a.css>")
		w.Header().Set("X-Request-Id", "theirs")
		w.Header().Set("Set-Cookie", "versola_edge_demo=planted; Path=/")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.Header().Set("Trailer", "Checksum")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "tea")
		w.Header().Set("Checksum", "abc")
		return
	case "/files/cors":
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		return
	case "/files/stall":
		_, _ = io.WriteString(w, "half")
		flush()
		select {
		case <-r.Context().Done():
			u.gone <- struct{}{}
		case <-u.next:
			_, _ = io.WriteString(w, "whole")
		}
		return
	case "/hold":
		select {
		case <-r.Context().Done():
			u.gone <- struct{}{}
		case <-time.After(10 * time.Second):
		}
		return
	case "/cut":
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "half")
		flush()
		panic(http.ErrAbortHandler)
	}
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Add("Set-Cookie", "theme=dark; Path=/")
	w.Header().Add("Set-Cookie", "versola_edge_demo=planted; Path=/")
	w.Header().Add("Set-Cookie", "__Host-Versola_Edge_x=planted; Path=/; Secure")
	w.Header().Set("Early", "no")
	_ = json.NewEncoder(w).Encode(reached{r.Method, r.RequestURI, r.Host, r.Header, string(body)})
}

func (r *response) reached(t testing.TB) reached {
	t.Helper()
	var out reached
	if err := json.Unmarshal([]byte(r.body), &out); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("the call did not reach the upstream: %d %s", r.StatusCode, r.body)
	}
	return out
}
