package spec

import (
	"fmt"
	"strings"
	"time"
)

// ParseWhenBusy reads what a spec says becomes of those at work in a VM that is
// to be taken down: "block" is 0, "wait 30m" is how long they are waited for.
func ParseWhenBusy(text string) (time.Duration, error) {
	if text == blockWhenBusy {
		return 0, nil
	}
	word, limit, two := strings.Cut(text, " ")
	if word != "wait" {
		return 0, fmt.Errorf("%q is neither %q nor like %q", shorten(text), blockWhenBusy, "wait 30m")
	}
	if !two {
		return 0, fmt.Errorf("%q does not say how long: write for example %q", shorten(text), "wait 30m")
	}
	seconds, err := ParseDuration(limit)
	if err != nil {
		return 0, err
	}
	if seconds == 0 {
		return 0, fmt.Errorf("%q waits for nobody: write %q", shorten(text), blockWhenBusy)
	}
	return time.Duration(seconds) * time.Second, nil
}

// blockWhenBusy waits for nobody: a VM that is busy is not taken down.
const blockWhenBusy = "block"

// canonicalWhenBusy writes what was read the one way.
func canonicalWhenBusy(wait time.Duration) string {
	if wait == 0 {
		return blockWhenBusy
	}
	return "wait " + FormatDuration(int64(wait/time.Second))
}
