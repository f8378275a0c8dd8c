package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bounds of a listener.
const (
	// pingEvery is how long a listener waits in silence before it makes sure
	// that its connection still lives: a peer that vanished sends no reset.
	pingEvery = 15 * time.Second
	// reconnectFirst and reconnectMost bound the pause between attempts to
	// reconnect. The most is under a second, so that a change is seen within
	// about one second of the database's return.
	reconnectFirst = 50 * time.Millisecond
	reconnectMost  = 500 * time.Millisecond
)

// Listener follows notifications on a connection of its own, outside the pool.
type Listener struct {
	URL     string
	Channel string
	// OnConnect runs after every (re)connection, before any notification: what
	// happened in between is unknown, so the caller resynchronises.
	OnConnect func(context.Context)
	// OnNotify runs for each notification, one at a time.
	OnNotify func(ctx context.Context, payload string)
	Log      *slog.Logger
}

// Run follows until ctx ends. It never gives up on a database that is away.
func (l *Listener) Run(ctx context.Context) error {
	pause, down := reconnectFirst, false
	back := func() {
		if down {
			l.Log.InfoContext(ctx, "database listener is connected again", "channel", l.Channel)
		}
		down = false
	}
	for ctx.Err() == nil {
		connected, err := l.follow(ctx, back)
		if ctx.Err() != nil {
			break
		}
		if connected {
			pause = reconnectFirst
		}
		// An outage is one line, however many attempts it takes.
		if !down {
			l.Log.WarnContext(ctx, "database listener has no connection", "channel", l.Channel, "error", err)
		}
		down = true
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(pause*2, reconnectMost)
	}
	return nil
}

// follow connects once; back is told when it is.
func (l *Listener) follow(ctx context.Context, back func()) (connected bool, err error) {
	cfg, err := pgx.ParseConfig(l.URL)
	if err != nil {
		return false, fmt.Errorf("read database url: %w", redactURL(err))
	}
	cfg.ConnectTimeout = connectTimeout
	cfg.RuntimeParams["application_name"] = "versola listen " + l.Channel
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if err := listen(ctx, conn, l.Channel); err != nil {
		return false, err
	}
	back()
	l.OnConnect(ctx)
	for {
		waiting, cancel := context.WithTimeout(ctx, pingEvery)
		n, err := conn.WaitForNotification(waiting)
		cancel()
		switch {
		case err == nil:
			l.OnNotify(ctx, n.Payload)
		case waiting.Err() != nil && ctx.Err() == nil && !conn.IsClosed():
			if err := ping(ctx, conn); err != nil {
				return true, err
			}
		default:
			return true, fmt.Errorf("wait for notification: %w", err)
		}
	}
}

func listen(ctx context.Context, conn *pgx.Conn, channel string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}

func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := conn.Ping(ctx); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}
