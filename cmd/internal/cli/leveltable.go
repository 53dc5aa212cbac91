package cli

import "log/slog"

// The levels beyond slog's own.
const (
	levelTrace = slog.Level(-8)
	levelError = slog.LevelError
	levelFatal = slog.Level(12)
	levelNone  = slog.Level(16) // no record has it: nothing is logged
)

// levels lists the levels that --log-level and VMCTL_LOG take, the one that shows most first.
var levels = []struct {
	name  string
	level slog.Level
}{
	{"trace", levelTrace},
	{"debug", slog.LevelDebug},
	{"info", slog.LevelInfo},
	{"warn", slog.LevelWarn},
	{"error", levelError},
	{"fatal", levelFatal},
}
