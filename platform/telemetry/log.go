package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// Formats of the log.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// NewLogger makes the process's logger. level is debug, info (also ""), warn or
// error; format is text (also "") or json. Times are UTC; in JSON a duration is
// a number of seconds. Errors: an unknown level or format.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	switch level {
	case "debug":
		l = slog.LevelDebug
	case "", "info":
		l = slog.LevelInfo
	case "warn":
		l = slog.LevelWarn
	case "error":
		l = slog.LevelError
	default:
		return nil, fmt.Errorf("unknown log level %q: use debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: l, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime:
			a.Value = slog.TimeValue(a.Value.Time().UTC())
		case format == FormatJSON && a.Value.Kind() == slog.KindDuration:
			a.Value = slog.Float64Value(a.Value.Duration().Seconds())
		}
		return a
	}}
	switch format {
	case "", FormatText:
		return slog.New(slog.NewTextHandler(w, options)), nil
	case FormatJSON:
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("unknown log format %q: use text or json", format)
}
