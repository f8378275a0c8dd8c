package feed

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/central/catalog/edgeauth"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/id"
)

// Wait is how long a request waits for a change: under the 30 seconds after
// which common proxies give a silent request up.
const Wait = 25 * time.Second

// Feed answers the edges. Its zero value is not usable; call [New].
type Feed struct {
	holder  *catalog.Holder
	clock   clock.Clock
	wait    time.Duration
	current atomic.Pointer[revision]

	mu     sync.Mutex
	sealed map[string]*sealedSecrets // by edge
}

// revision is one configuration and what was made of it for edges.
type revision struct {
	snapshot *catalog.Snapshot
	catalog  *catalog.Catalog
	tag      string // the ETag
	mu       sync.Mutex
	encoded  map[string]*encoded
}

type encoded struct {
	once sync.Once
	body []byte
	err  error
}

// sealedSecrets keeps what was encrypted to an edge, so that a change
// elsewhere does not encrypt everything again. Only what the last snapshot
// used is kept.
type sealedSecrets struct {
	jwks string
	byID map[id.UUID]kept
}

type kept struct {
	content SealedFor
	sealed  []catalog.SealedSecret
}

// New makes a feed. wait is [Wait] but in tests.
func New(holder *catalog.Holder, c clock.Clock, wait time.Duration) *Feed {
	return &Feed{holder: holder, clock: c, wait: wait, sealed: map[string]*sealedSecrets{}}
}

// Set gives the feed a configuration, before the holder gets its catalog.
func (f *Feed) Set(s *catalog.Snapshot, c *catalog.Catalog) {
	f.current.Store(&revision{snapshot: s, catalog: c, tag: tagOf(s), encoded: map[string]*encoded{}})
}

// tagOf names what an edge is sent: the revision, and what does not come from
// the database but from the process's configuration.
func tagOf(s *catalog.Snapshot) string {
	sum := sha256.Sum256([]byte(s.Issuer + "\x00" + s.RootTenant))
	return fmt.Sprintf(`"%d-%x"`, s.Revision, sum[:4])
}

// Handle answers GET /internal/catalog.
func (f *Feed) Handle(c echo.Context) error {
	r := c.Request()
	timeout := time.NewTimer(f.wait)
	defer timeout.Stop()
	for first := true; ; first = false {
		changed := f.holder.Changed()
		current := f.current.Load()
		var cat *catalog.Catalog
		if current != nil {
			cat = current.catalog
		}
		// Checked each time around: the edge may have gone meanwhile.
		edgeID, err := edgeauth.Verify(cat, r, f.clock.Now())
		if err != nil {
			return unauthorized(c, err)
		}
		if first {
			httpserver.Annotate(c, slog.String("edge", edgeID))
		}
		tag := current.tag
		c.Response().Header().Set("ETag", tag)
		c.Response().Header().Set("Cache-Control", "no-store")
		if !strings.EqualFold(strings.TrimSpace(r.Header.Get("If-None-Match")), tag) {
			body, err := f.encoded(current, edgeID)
			if err != nil {
				return err
			}
			return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body)
		}
		select {
		case <-changed:
		case <-timeout.C:
			return c.NoContent(http.StatusNotModified)
		case <-httpserver.Stopping(r.Context()):
			c.Response().Header().Set("Connection", "close")
			return c.NoContent(http.StatusNotModified)
		case <-r.Context().Done():
			return nil
		}
	}
}

func unauthorized(c echo.Context, err error) error {
	if httpserver.AsProblem(err).Status == http.StatusUnauthorized {
		c.Response().Header().Set("WWW-Authenticate", "Bearer")
	}
	return err
}

// encoded returns the edge's snapshot, made once.
func (f *Feed) encoded(r *revision, edgeID string) ([]byte, error) {
	r.mu.Lock()
	e, ok := r.encoded[edgeID]
	if !ok {
		e = &encoded{}
		r.encoded[edgeID] = e
	}
	r.mu.Unlock()
	e.once.Do(func() {
		if e.body, e.err = f.encode(r, edgeID); e.err != nil {
			e.err = fmt.Errorf("make catalog for edge %s: %w", edgeID, e.err)
		}
	})
	return e.body, e.err
}

func (f *Feed) encode(r *revision, edgeID string) ([]byte, error) {
	edge, ok := r.catalog.Edge(edgeID)
	if !ok {
		return nil, fmt.Errorf("no edge %q", edgeID)
	}
	keys, err := encryptionKeys(edge.JWKS)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	before := f.sealed[edgeID]
	f.mu.Unlock()
	if before == nil || before.jwks != string(edge.JWKS) {
		before = &sealedSecrets{}
	}
	now := &sealedSecrets{jwks: string(edge.JWKS), byID: map[id.UUID]kept{}}
	s, err := cut(r.snapshot, r.catalog, edgeID, func(secretID id.UUID, content SealedFor) ([]catalog.SealedSecret, error) {
		k, ok := before.byID[secretID]
		if !ok || k.content != content {
			sealed, err := encrypt(keys, secretID, content)
			if err != nil {
				return nil, err
			}
			k = kept{content, sealed}
		}
		now.byID[secretID] = k
		return k.sealed, nil
	})
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	f.mu.Lock()
	f.sealed[edgeID] = now
	f.mu.Unlock()
	return body, nil
}
