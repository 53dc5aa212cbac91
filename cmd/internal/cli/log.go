package cli

import (
	"io"
	"log/slog"
	"strings"
	"time"
)

// parseLevel reads a log level. from names its source in the error.
func parseLevel(text, from string) (slog.Level, error) {
	var names []string
	for _, l := range levels {
		if strings.EqualFold(text, l.name) {
			return l.level, nil
		}
		names = append(names, l.name)
	}
	return levelNone, rejected("unknown_log_level", "read "+from+": unknown log level "+quoted(text),
		"the levels are "+strings.Join(names, ", "))
}

// levelName returns the name of a level, in capitals.
func levelName(level slog.Level) string {
	name := levels[0].name
	for _, l := range levels {
		if level >= l.level {
			name = l.name
		}
	}
	return strings.ToUpper(name)
}

// newLog returns a log that writes records at level and above, with the time
// that now gives.
func newLog(w io.Writer, level slog.Level, now func() time.Time) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
			switch {
			case len(groups) > 0:
				return attr
			case attr.Key == slog.TimeKey:
				return slog.Time(slog.TimeKey, now().UTC())
			case attr.Key == slog.LevelKey:
				if level, ok := attr.Value.Any().(slog.Level); ok {
					return slog.String(slog.LevelKey, levelName(level))
				}
			}
			return attr
		},
	}))
}

// log returns the command's log on standard error. It shows nothing before the flags are
// read.
func (a *app) log() *slog.Logger {
	return newLog(a.stderr, a.global.level, a.env.Now)
}

func errAttr(err error) slog.Attr { return slog.String("error", err.Error()) }

func codeAttr(code int) slog.Attr { return slog.Int("exit_code", code) }
