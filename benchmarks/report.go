package main

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"time"
)

// report is the outcome of a run, in print and in JSON.
type report struct {
	Method    string                `json:"method"`
	Rate      float64               `json:"planned_steps_per_second"`
	Achieved  float64               `json:"achieved_steps_per_second"`
	Measured  float64               `json:"measured_seconds"`
	Steps     map[string]stepReport `json:"steps"`
	Failed    int                   `json:"failed_steps"`
	Failures  map[string]int        `json:"failures,omitempty"`
	Skipped   int                   `json:"skipped_steps"`
	DriverLag float64               `json:"driver_lag_ms"`
	Valid     bool                  `json:"valid"` // the driver kept its own schedule
	Cores     map[string]float64    `json:"cores_per_1000_steps_per_second"`
	Memory    map[string]int64      `json:"peak_rss_bytes"`
	Machine   map[string]any        `json:"machine"`
}

// stepReport is the latency of one kind of step, in milliseconds from the
// scheduled start.
type stepReport struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

const method = "open loop, Poisson arrivals, latency from the scheduled start, plateau only; CPU time from /proc per process"

func summarise(o driveOptions, rec *recorder, watch *processes) *report {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	r := &report{
		Method: method, Rate: o.Rate, Measured: watch.took.Seconds(), Steps: map[string]stepReport{}, Failed: rec.failed, Failures: rec.failures,
		Skipped: rec.skipped, DriverLag: ms(rec.lag.Microseconds()), Valid: rec.lag <= maxLag, Cores: map[string]float64{}, Memory: map[string]int64{},
		Machine: map[string]any{"cpus": runtime.NumCPU(), "os": runtime.GOOS, "arch": runtime.GOARCH, "go": runtime.Version()},
	}
	var total int64
	for kind, h := range rec.latency {
		r.Steps[kind] = stepReport{Count: h.TotalCount(), P50: ms(h.ValueAtQuantile(50)), P90: ms(h.ValueAtQuantile(90)), P99: ms(h.ValueAtQuantile(99)), Max: ms(h.Max())}
		total += h.TotalCount()
	}
	r.Achieved = float64(total) / watch.took.Seconds()
	for _, group := range []string{"versola", "postgres", "driver"} {
		u := watch.used(group)
		r.Memory[group] = u.Memory
		if total > 0 {
			r.Cores[group] = u.CPU.Seconds() / float64(total) * 1000
		}
	}
	return r
}

func ms(microseconds int64) float64 {
	return float64(microseconds) / float64(time.Millisecond/time.Microsecond)
}

func (r *report) print(out io.Writer) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	p("")
	p("%-24s %8s %9s %9s %9s %9s", "step", "count", "p50 ms", "p90 ms", "p99 ms", "max ms")
	for _, kind := range slices.Sorted(maps.Keys(r.Steps)) {
		s := r.Steps[kind]
		p("%-24s %8d %9.2f %9.2f %9.2f %9.2f", kind, s.Count, s.P50, s.P90, s.P99, s.Max)
	}
	p("")
	p("steps/s        %.0f planned, %.0f achieved over %.0f s", r.Rate, r.Achieved, r.Measured)
	p("failed         %d", r.Failed)
	for _, cause := range slices.Sorted(maps.Keys(r.Failures)) {
		p("                 %d x %s", r.Failures[cause], cause)
	}
	if r.Skipped > 0 {
		p("skipped        %d (every session was busy: raise --sessions)", r.Skipped)
	}
	for _, group := range []string{"versola", "postgres", "driver"} {
		p("%-14s %.3f cores per 1,000 steps/s, peak memory %d MiB", group, r.Cores[group], r.Memory[group]>>20)
	}
	if !r.Valid {
		p("NOT A RESULT   the driver was %.0f ms behind its own schedule: lower --rate or give it more CPU", r.DriverLag)
	}
	p("method         %s", r.Method)
}
