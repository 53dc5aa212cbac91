//go:build unix

package guest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"vmctl/providers"
	"vmctl/providers/guest"
)

// A command on this host ends with its children.
func TestACommandThatIsCancelledEndsWithItsChildren(t *testing.T) {
	g := guest.OnHost(t.TempDir(), []string{"PATH=" + os.Getenv("PATH")})
	closeAfter(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	var child strings.Builder
	_, err := g.Run(ctx, providers.Command{
		Args: []string{"sh", "-c", "sleep 3600 & echo $!; wait"}, Stdout: writer(func(b []byte) { child.Write(b); cancel() }),
	})
	if !errors.As(err, new(*providers.FateError)) {
		t.Error(err)
	}
	pid := strings.TrimSpace(child.String())
	for exec.Command("kill", "-0", pid).Run() == nil { // until the system has collected it
		if state, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && strings.Contains(string(state), ") Z ") {
			break // nobody collects it
		}
	}
}
