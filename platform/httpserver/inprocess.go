package httpserver

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// InProcess is an http.RoundTripper that calls a handler of the same process:
// the client's code path is the one it has over the network, without sockets.
// Bodies stream both ways, and a client that goes away cancels the handler.
type InProcess struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t InProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr = "127.0.0.1:0"
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/1.1", 1, 1
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	if r.ContentLength > 0 {
		in.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	body, sink := io.Pipe()
	w := &inProcessWriter{header: http.Header{}, sink: sink, ready: make(chan struct{})}
	go t.serve(w, in)
	select {
	case <-w.ready:
	case <-r.Context().Done():
		_ = body.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
	if w.aborted != nil {
		return nil, w.aborted
	}
	length := int64(-1)
	if n, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil {
		length = n
	}
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: body, ContentLength: length, Request: r,
	}, nil
}

var errAborted = errors.New("the handler gave up without an answer")

func (t InProcess) serve(w *inProcessWriter, r *http.Request) {
	defer func() {
		_ = r.Body.Close() // a RoundTripper closes what it was given
		if v := recover(); v != nil {
			w.abort()
			return
		}
		w.WriteHeader(http.StatusOK)
		_ = w.sink.Close()
	}()
	t.Handler.ServeHTTP(w, r)
}

type inProcessWriter struct {
	header  http.Header
	sent    http.Header // what header was when the answer began
	status  int
	aborted error
	sink    *io.PipeWriter
	ready   chan struct{}
	once    sync.Once
}

// Header implements http.ResponseWriter.
func (w *inProcessWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *inProcessWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.ready)
	})
}

// Write implements http.ResponseWriter.
func (w *inProcessWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.sink.Write(p)
}

// Flush implements http.Flusher; the pipe holds nothing back.
func (w *inProcessWriter) Flush() { w.WriteHeader(http.StatusOK) }

func (w *inProcessWriter) abort() {
	w.once.Do(func() {
		w.aborted = errAborted
		close(w.ready)
	})
	_ = w.sink.CloseWithError(errAborted)
}
