package edge_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"versola/modules/central/catalog"
)

func TestIdleTimeout_StalledAnswerIsBrokenOffAndTheUpstreamToldSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.snapshot.Resources[0].Upstream.IdleTimeout = catalog.Duration(100 * time.Millisecond)
	w.compile()
	e := w.edge()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL+"/resources/bank/files/stall", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+w.auth.bearer(nil))
	res, err := noRedirects.Do(r)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if string(body) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q and %v: a truncated answer must look like one", body, err)
	}
	select {
	case <-w.upstream.gone:
	case <-t.Context().Done():
	}
}

func TestIdleTimeout_MovingAnswerPasses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.snapshot.Resources[0].Upstream.IdleTimeout = catalog.Duration(time.Minute)
	w.compile()
	e := w.edge()
	go func() {
		for range 3 {
			w.upstream.next <- struct{}{}
		}
	}()
	res := newBrowser(t).get(e.URL+"/resources/bank/stream", "Authorization", "Bearer "+w.auth.bearer(nil))
	if res.StatusCode != http.StatusOK || res.body != "data: 0\n\ndata: 1\n\ndata: 2\n\n" {
		t.Errorf("%d %q", res.StatusCode, res.body)
	}
}
