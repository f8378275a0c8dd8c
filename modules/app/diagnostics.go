package app

import (
	"net/http"
	"net/http/pprof"
	"sort"
	"sync/atomic"

	"github.com/labstack/echo/v4"
)

// readiness collects why the process is not ready. A part that is not ready is
// named with its cause; the process is ready when there is none.
type readiness struct {
	parts    map[string]func() error
	stopping atomic.Bool
}

func newReadiness() *readiness { return &readiness{parts: map[string]func() error{}} }

// add registers a part before the listeners start.
func (r *readiness) add(name string, check func() error) { r.parts[name] = check }

// readyAnswer is the body of /readyz.
type readyAnswer struct {
	Ready  bool          `json:"ready"`
	Causes []notReadyYet `json:"causes,omitempty"`
}

type notReadyYet struct {
	Part  string `json:"part"`
	Cause string `json:"cause"`
}

func (r *readiness) answer() readyAnswer {
	var causes []notReadyYet
	if r.stopping.Load() {
		causes = append(causes, notReadyYet{"process", "shutting down"})
	}
	for name, check := range r.parts {
		if err := check(); err != nil {
			causes = append(causes, notReadyYet{name, err.Error()})
		}
	}
	sort.Slice(causes, func(i, j int) bool { return causes[i].Part < causes[j].Part })
	return readyAnswer{Ready: len(causes) == 0, Causes: causes}
}

// mountDiagnostics serves what operators and their tools look at. It is never
// on a public listener.
func mountDiagnostics(e *echo.Group, ready *readiness, metrics http.Handler) {
	e.GET("/livez", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", func(c echo.Context) error {
		a := ready.answer()
		if !a.Ready {
			return c.JSON(http.StatusServiceUnavailable, a)
		}
		return c.JSON(http.StatusOK, a)
	})
	e.GET("/metrics", echo.WrapHandler(metrics))
	e.GET("/debug/pprof/cmdline", echo.WrapHandler(http.HandlerFunc(pprof.Cmdline)))
	e.GET("/debug/pprof/profile", echo.WrapHandler(http.HandlerFunc(pprof.Profile)))
	e.GET("/debug/pprof/symbol", echo.WrapHandler(http.HandlerFunc(pprof.Symbol)))
	e.GET("/debug/pprof/trace", echo.WrapHandler(http.HandlerFunc(pprof.Trace)))
	e.GET("/debug/pprof/*", echo.WrapHandler(http.HandlerFunc(pprof.Index)))
}
