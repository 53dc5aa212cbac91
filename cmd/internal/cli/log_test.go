package cli_test

import (
	"regexp"
	"strings"
	"testing"
)

// row L41: every level is accepted everywhere, and an unknown one is reported
func TestLogLevels(t *testing.T) {
	levels := []string{"trace", "debug", "info", "warn", "error", "fatal"}
	record := regexp.MustCompile(`(?m)^time=2026-03-01T12:00:00.000Z level=([A-Z]+) msg=`)
	for i, level := range levels {
		h := newHouse(t, withID+small)
		h.memory.fail["wait_ssh vm.dev"] = brokenStart()
		h.environ = []string{"VMCTL_LOG=" + level}
		e := h.run("apply", "--auto-approve").exits(1)
		shown := map[string]bool{}
		for _, m := range record.FindAllStringSubmatch(e.stderr, -1) {
			shown[strings.ToLower(m[1])] = true
		}
		for j, other := range levels {
			want := j >= i && other != "warn" && other != "fatal" // nothing of that kind happens
			if shown[other] != want {
				t.Errorf("VMCTL_LOG=%s: a record of level %s is shown: %v, want %v\n%s", level, other, shown[other], want, e.stderr)
			}
		}
	}
	h := newHouse(t, withID+small)
	h.run("plan", "--log-level=DEBUG").exits(0).warns("level=DEBUG")
	h.run("plan").exits(0).silent("level=")
	for _, command := range []string{"version", "validate", "plan", "apply", "status", "fmt"} {
		h.environ = nil
		h.run(command, "--log-level=foo").exits(3).warns(`unknown log level "foo"`, "the levels are trace, debug, info, warn, error, fatal")
		h.environ = []string{"VMCTL_LOG=foo"}
		h.run(command).exits(3).warns("read VMCTL_LOG", "the levels are trace, debug, info, warn, error, fatal")
	}
}
