package spec

import (
	"fmt"
	"strings"
	"time"
)

// ParseWhenBusy reads how long a spec waits for the holders in a VM before it is taken down:
// "block" is 0, "wait 30m" is the longest wait.
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

// blockWhenBusy waits for nobody: a busy VM is not taken down.
const blockWhenBusy = "block"

// canonicalWhenBusy writes a wait in its canonical form.
func canonicalWhenBusy(wait time.Duration) string {
	if wait == 0 {
		return blockWhenBusy
	}
	return "wait " + FormatDuration(int64(wait/time.Second))
}
