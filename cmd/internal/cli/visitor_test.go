//go:build unix

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A command and a shell begin in the folder that the guest has of the present one, and still run if it is not there.
func TestVisitorsBeginInAFolder(t *testing.T) {
	here, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(here, "it's there")
	if err := os.Mkdir(there, 0o700); err != nil {
		t.Fatal(err)
	}
	say := []string{"sh", "-c", `pwd; printf '<%s>' "$@"`, "say", "a b", "it's", "$HOME", ""}
	for _, c := range []struct{ folder, want string }{{"", here}, {there, there}, {filepath.Join(here, "gone"), here}} {
		args := commandIn(c.folder, say)
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = here
		out, err := cmd.CombinedOutput()
		if want := c.want + "\n<a b><it's><$HOME><>"; err != nil || string(out) != want {
			t.Errorf("in %q the command says %q, %v, want %q", c.folder, out, err, want)
		}
		if c.folder == "" {
			continue
		}
		shell := exec.CommandContext(t.Context(), "sh", "-c", shellIn(c.folder))
		shell.Dir, shell.Env, shell.Stdin = here, []string{"SHELL=/bin/sh", "PATH=" + os.Getenv("PATH")}, strings.NewReader("pwd\n")
		if out, err := shell.Output(); err != nil || string(out) != c.want+"\n" {
			t.Errorf("in %q the shell says %q, %v, want %s", c.folder, out, err, c.want)
		}
	}
	if line := shellIn(""); line != "" {
		t.Errorf("the shell of a home runs %q", line)
	}
}
