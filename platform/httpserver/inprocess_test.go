package httpserver_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"versola/platform/httpserver"
)

func client(h http.HandlerFunc) *http.Client {
	return &http.Client{Transport: httpserver.InProcess{Handler: h}}
}

func post(t *testing.T, c *http.Client, body io.Reader) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://somewhere:8080/path?q=1", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestInProcess_CarriesRequestAndAnswer(t *testing.T) {
	t.Parallel()
	resp := post(t, client(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Host != "somewhere:8080" || r.RequestURI != "/path?q=1" || string(body) != "hello" {
			t.Errorf("got host %q, target %q, body %q", r.Host, r.RequestURI, body)
		}
		w.Header().Set("X-A", "1")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "1")
		_, _ = w.Write([]byte("answer"))
	}), strings.NewReader("hello"))
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusTeapot || resp.Header.Get("X-A") != "1" || resp.Header.Get("X-Late") != "" || string(body) != "answer" {
		t.Errorf("got %d %v %q", resp.StatusCode, resp.Header, body)
	}
}

func TestInProcess_StreamsBeforeTheHandlerEnds(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	resp := post(t, client(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("first"))
		<-more
		_, _ = w.Write([]byte("second"))
	}), nil)
	buf := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, buf); err != nil || string(buf) != "first" {
		t.Fatalf("read %q, %v", buf, err)
	}
	close(more)
	rest, _ := io.ReadAll(resp.Body)
	if !bytes.Equal(rest, []byte("second")) {
		t.Errorf("rest is %q", rest)
	}
}

func TestInProcess_ClientGoneCancelsTheHandler(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://x/", nil)
	go func() { cancel() }()
	resp, err := client(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(ended)
	}).Do(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-ended
}

func TestInProcess_PanicIsAnErrorOfTheCall(t *testing.T) {
	t.Parallel()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/", nil)
	resp, err := client(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }).Do(r)
	if err == nil {
		_ = resp.Body.Close()
		t.Error("a panicking handler gave an answer")
	}
}
