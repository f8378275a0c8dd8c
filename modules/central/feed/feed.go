package feed

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/modules/central/catalog"
	"versola/modules/central/catalog/edgeauth"
	"versola/modules/central/store"
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
	base
	snapshot *catalog.Snapshot
	catalog  *catalog.Catalog
	state    *store.State // what the snapshot is of
	past     []base       // what edges may still have, oldest first

	mu      sync.Mutex
	encoded map[wanted]*encoded
}

// wanted is what an edge asks for.
type wanted struct {
	edge string
	base string // ETag of what it has and wants the difference from; empty: all
}

type encoded struct {
	once sync.Once
	body []byte // nil: there is no difference to be had
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

// Set gives the feed a configuration, before the holder gets its catalog: the
// snapshot as the process has it, compiled, and the state that it is of. Calls
// must not overlap.
func (f *Feed) Set(s *catalog.Snapshot, c *catalog.Catalog, of *store.State) {
	next := &revision{base: base{tag: tagOf(s, of.Mark), mark: of.Mark}, snapshot: s, catalog: c, state: of, encoded: map[wanted]*encoded{}}
	if before := f.current.Load(); before != nil && before.tag != next.tag {
		next.past = before.past[max(0, len(before.past)+1-maxPast):]
		next.past = append(slices.Clip(next.past), before.base)
		next.placement = before.follow(of)
	}
	if next.placement == nil {
		next.placement = place(s)
	}
	f.current.Store(next)
}

// tagOf names what an edge is sent: the revision, and what does not come from
// the database but from the process's configuration.
func tagOf(s *catalog.Snapshot, m store.Mark) string {
	sum := sha256.Sum256([]byte(s.Issuer + "\x00" + s.RootTenant + "\x00" + m.Token.String()))
	return fmt.Sprintf(`"%d-%x"`, s.Revision, sum[:8])
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
		if has := strings.TrimSpace(r.Header.Get("If-None-Match")); !strings.EqualFold(has, tag) {
			return f.send(c, current, edgeID, has)
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

// send answers with the edge's snapshot, or with what differs from the one that
// it has, where it wants that and it is known (RFC 3229 section 10).
func (f *Feed) send(c echo.Context, r *revision, edgeID, has string) error {
	header := c.Response().Header()
	header.Set("Vary", "A-IM, If-None-Match")
	if c.Request().Header.Get("A-IM") == catalog.DeltaIM && r.knows(has) {
		body, err := f.encoded(r, wanted{edgeID, has})
		if err != nil {
			return err
		}
		if body != nil {
			header.Set("IM", catalog.DeltaIM)
			header.Set("Delta-Base", has)
			return c.Blob(http.StatusIMUsed, echo.MIMEApplicationJSON, body)
		}
	}
	body, err := f.encoded(r, wanted{edge: edgeID})
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body)
}

// encoded returns what an edge wants, made once.
func (f *Feed) encoded(r *revision, w wanted) ([]byte, error) {
	r.mu.Lock()
	e, ok := r.encoded[w]
	if !ok {
		e = &encoded{}
		r.encoded[w] = e
	}
	r.mu.Unlock()
	e.once.Do(func() {
		if w.base == "" {
			e.body, e.err = f.encode(r, w.edge)
		} else {
			e.body, e.err = f.encodeDelta(r, w)
		}
		if e.err != nil {
			e.err = fmt.Errorf("make catalog for edge %s: %w", w.edge, e.err)
		}
	})
	return e.body, e.err
}

func (f *Feed) encode(r *revision, edgeID string) ([]byte, error) {
	seal, err := f.sealer(r, edgeID)
	if err != nil {
		return nil, err
	}
	s, err := cut(r, edgeID, seal.seal)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	f.mu.Lock()
	f.sealed[edgeID] = seal.now
	f.mu.Unlock()
	return body, nil
}

// encodeDelta returns nil where the edge has to be sent all.
func (f *Feed) encodeDelta(r *revision, w wanted) ([]byte, error) {
	seal, err := f.sealer(r, w.edge)
	if err != nil {
		return nil, err
	}
	d, err := difference(r, w, seal.seal)
	if d == nil || err != nil {
		return nil, err
	}
	body, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return body, nil
}

// sealer encrypts secrets to an edge's keys; what was encrypted to them before
// is taken from there.
type sealer struct {
	keys        []jwk.Key
	before, now *sealedSecrets
}

func (f *Feed) sealer(r *revision, edgeID string) (*sealer, error) {
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
	return &sealer{keys, before, &sealedSecrets{jwks: string(edge.JWKS), byID: map[id.UUID]kept{}}}, nil
}

func (s *sealer) seal(secretID id.UUID, content SealedFor) ([]catalog.SealedSecret, error) {
	k, ok := s.before.byID[secretID]
	if !ok || k.content != content {
		sealed, err := encrypt(s.keys, secretID, content)
		if err != nil {
			return nil, err
		}
		k = kept{content, sealed}
	}
	s.now.byID[secretID] = k
	return k.sealed, nil
}
