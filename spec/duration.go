package spec

import (
	"fmt"
	"strconv"
	"time"
)

// ParseDuration reads a duration as a spec writes it, "30s", "5m" or "1m30s",
// and returns whole seconds, which are never negative.
func ParseDuration(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	switch {
	case text == "0" || err != nil:
		return 0, fmt.Errorf("%q is no duration; write it with a unit, like %q", shorten(text), suggestDuration(text))
	case d < 0:
		return 0, fmt.Errorf("%q is negative; write for example %q", text, "30s")
	case d%time.Second != 0:
		return 0, fmt.Errorf("%q is no whole number of seconds; write for example %q", text, FormatDuration(int64(d/time.Second)+1))
	}
	return int64(d / time.Second), nil
}

// FormatDuration writes seconds as ParseDuration reads them: "30s", "1m30s", "24h".
func FormatDuration(seconds int64) string {
	if seconds == 0 {
		return "0s"
	}
	if seconds < 0 {
		return "-" + FormatDuration(-seconds)
	}
	var text string
	for _, unit := range []struct {
		name    string
		seconds int64
	}{{"h", 3600}, {"m", 60}, {"s", 1}} {
		if n := seconds / unit.seconds; n > 0 {
			text += strconv.FormatInt(n, 10) + unit.name
			seconds %= unit.seconds
		}
	}
	return text
}

// suggestDuration returns the duration that text was probably meant to be.
func suggestDuration(text string) string {
	if bareNumber.MatchString(text) && text != "0" {
		return text + "s"
	}
	return "30s"
}
