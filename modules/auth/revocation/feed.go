package revocation

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/tenant"
	"versola/modules/central/catalog/edgeauth"
	"versola/platform/clock"
	"versola/platform/httpserver"
)

const (
	// waitMost is how long a poll is held open: under the idle time of common
	// load balancers (60 s) with room for a slow network.
	waitMost = 25 * time.Second
	// maxAskedGaps bounds the numbers that an edge may ask for; ours are
	// bounded the same way.
	maxAskedGaps = maxGaps
)

// Feed serves the log to edges, authenticated by their own keys.
type Feed struct {
	Follower *Follower
	Catalog  tenant.Source
	Clock    clock.Clock
}

// Batch is the answer of the feed.
type Batch struct {
	Entries []Entry `json:"entries"`
	Head    int64   `json:"head"` // the highest number that this process has seen
}

// Handle answers GET /internal/revocations?after=<n>&gaps=<n,n>: at once when
// there is something new, after waiting otherwise. Without after it answers
// with everything unexpired.
func (f *Feed) Handle(c echo.Context) error {
	if _, err := edgeauth.Verify(f.Catalog.Current(), c.Request(), f.Clock.Now()); err != nil {
		return err
	}
	after, gaps, wait, err := parseFeed(c)
	if err != nil {
		return err
	}
	timer := time.NewTimer(waitMost)
	defer timer.Stop()
	ctx := c.Request().Context()
	for {
		entries, head, changed, loaded := f.Follower.since(after, gaps)
		if loaded && (!wait || len(entries) > 0) {
			return answer(c, Batch{entries, head})
		}
		select {
		case <-changed:
			continue
		case <-timer.C:
		case <-httpserver.Stopping(ctx):
		case <-ctx.Done():
		}
		if !loaded {
			// An empty answer would say that nothing is revoked.
			return &httpserver.Problem{Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
				Detail: "the revocation log has not been read yet", Reason: "not_loaded"}
		}
		return answer(c, Batch{[]Entry{}, head})
	}
}

func answer(c echo.Context, b Batch) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, b)
}

func parseFeed(c echo.Context) (after int64, gaps []int64, wait bool, err error) {
	bad := func(name string) error {
		return echo.NewHTTPError(http.StatusBadRequest, name+" is malformed")
	}
	if text := c.QueryParam("after"); text != "" {
		wait = true
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return 0, nil, false, bad("after")
		}
	}
	if text := c.QueryParam("gaps"); text != "" {
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.ParseInt(part, 10, 64)
			if err != nil || n < 0 || len(gaps) == maxAskedGaps {
				return 0, nil, false, bad("gaps")
			}
			gaps = append(gaps, n)
		}
		slices.Sort(gaps)
		gaps = slices.Compact(gaps)
	}
	return after, gaps, wait, nil
}
