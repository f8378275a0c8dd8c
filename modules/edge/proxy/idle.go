package proxy

import (
	"io"
	"time"

	"versola/modules/edge/policy"
)

// patience gives an upstream's answer up when its next piece does not come. An
// answer that is broken off reaches the client as one.
type patience struct {
	io.ReadCloser
	timer *time.Timer
	idle  time.Duration
}

// newPatience watches a body; the exchange must have a cancel.
func newPatience(b io.ReadCloser, x *exchange, idle time.Duration) *patience {
	return &patience{ReadCloser: b, idle: idle, timer: time.AfterFunc(idle, func() { x.end(policy.UpstreamIdle) })}
}

// Read implements io.Reader.
func (p *patience) Read(b []byte) (int, error) {
	p.timer.Reset(p.idle)
	n, err := p.ReadCloser.Read(b)
	p.timer.Stop() // while the client takes its time, the upstream is not waited for
	return n, err
}

// Close implements io.Closer.
func (p *patience) Close() error {
	p.timer.Stop()
	return p.ReadCloser.Close()
}
