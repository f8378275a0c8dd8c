package pgembed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"versola/platform/clock"
)

// Bounds of the supervision.
const (
	// fastTimeout is how long a server may take to stop after SIGINT (fast
	// shutdown: transactions roll back, a checkpoint is written). One that takes
	// longer gets SIGQUIT and recovers at its next start; nothing committed is
	// lost, and the process ends within its 15 s.
	fastTimeout = 3 * time.Second
	// quitTimeout is how long after SIGQUIT the server is killed.
	quitTimeout = time.Second
	// restartFirst and restartMost bound the pause before a server that died
	// is started again.
	restartFirst = 100 * time.Millisecond
	restartMost  = 5 * time.Second
	// settled is how long a server must live for the pause to begin anew.
	settled = 10 * time.Second
	// firstAttempts is how often a server that never became ready is tried:
	// after a crash, sessions of the old one may still hold its memory.
	firstAttempts = 4
	// defaultConnections is PostgreSQL's own default.
	defaultConnections = 100
)

// server keeps one postgres process alive.
type server struct {
	place place
	bin   binaries
	opts  Options
	log   *slog.Logger

	ready   atomic.Bool
	stop    chan struct{} // closed by end
	once    atomic.Bool
	ended   chan struct{} // closed when supervise returns
	failure error         // why, once ended is closed
}

func newServer(p place, bin binaries, o Options) *server {
	return &server{place: p, bin: bin, opts: o, log: o.Log, stop: make(chan struct{}), ended: make(chan struct{})}
}

// markReady says that the server works: from now on it is restarted for ever.
func (s *server) markReady() { s.ready.Store(true) }

// end stops the server and waits until it is gone.
func (s *server) end() {
	if s.once.CompareAndSwap(false, true) {
		close(s.stop)
	}
	<-s.ended
}

// supervise runs the server again and again until end is called. It keeps its
// thread: the kernel sends the death signal when the thread that forked the
// server ends.
func (s *server) supervise() {
	runtime.LockOSThread()
	defer close(s.ended)
	pause := restartFirst
	for attempt := 1; ; attempt++ {
		start := clock.Monotonic()
		stopped, err := s.run()
		if stopped {
			return
		}
		if !s.ready.Load() && attempt >= firstAttempts {
			s.failure = err
			return
		}
		if clock.Since(start) > settled {
			pause = restartFirst
		}
		if s.ready.Load() {
			s.log.Error("private PostgreSQL ended by itself", "error", err, "restart_in", pause, "log", s.place.log)
		}
		select {
		case <-s.stop:
			return
		case <-time.After(pause):
		}
		pause = min(pause*2, restartMost)
		if err := s.place.stopOrphan(context.Background(), s.log); err != nil {
			s.log.Error("look for an earlier PostgreSQL", "error", err)
		}
	}
}

// run starts the server once and waits until it ends, by itself or by end.
func (s *server) run() (stopped bool, err error) {
	out, err := s.place.openLog()
	if err != nil {
		return false, err
	}
	defer func() { _ = out.Close() }()
	cmd := s.place.command(context.Background(), s.bin, "postgres", s.arguments()...)
	cmd.Stdout, cmd.Stderr = out, out
	death := syscall.SIGINT // fast shutdown
	if s.opts.NoSync {
		death = syscall.SIGQUIT // nothing is worth waiting for
	}
	setDeathSignal(cmd.SysProcAttr, death)
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("start postgres: %w", err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	select {
	case err := <-gone:
		if err == nil {
			err = errors.New("it was stopped by someone else")
		}
		return false, fmt.Errorf("postgres: %w", err)
	case <-s.stop:
		s.shutDown(cmd, gone)
		return true, nil
	}
}

func (s *server) shutDown(cmd *exec.Cmd, gone <-chan error) {
	first := step{syscall.SIGINT, fastTimeout}
	if s.opts.NoSync {
		first.signal = syscall.SIGQUIT
	}
	for _, st := range []step{first, {syscall.SIGQUIT, quitTimeout}, {syscall.SIGKILL, quitTimeout}} {
		if err := cmd.Process.Signal(st.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			s.log.Warn("signal private PostgreSQL", "signal", st.signal.String(), "error", err)
		}
		select {
		case <-gone:
			return
		case <-time.After(st.wait):
			s.log.Warn("private PostgreSQL does not stop", "signal", st.signal.String(), "waited", st.wait)
		}
	}
}

// step is one attempt to stop a server.
type step struct {
	signal syscall.Signal
	wait   time.Duration
}

// arguments configure the server on its command line, so that a cluster made
// by an older versola runs with the settings of this one.
func (s *server) arguments() []string {
	name, connections := s.opts.Name, s.opts.MaxConnections
	if name == "" {
		name = databaseName
	}
	if connections == 0 {
		connections = defaultConnections
	}
	settings := []string{
		"listen_addresses=", "port=5432", "unix_socket_directories=" + s.place.socket, "unix_socket_permissions=0700",
		"cluster_name=" + name, "max_connections=" + strconv.Itoa(connections),
		// A laptop's share: the working set of a demo, not of a product.
		"shared_buffers=64MB", "max_wal_size=256MB", "wal_level=minimal", "max_wal_senders=0",
		"max_parallel_workers_per_gather=0", "jit=off",
		// Values of keys (addresses, phone numbers) stay out of the log.
		"log_error_verbosity=terse", "log_destination=stderr", "logging_collector=off", "log_timezone=UTC", "timezone=UTC",
	}
	if s.opts.NoSync {
		settings = append(settings, "fsync=off", "full_page_writes=off", "autovacuum=off")
	}
	args := []string{"-D", s.place.data}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}
