package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/providers/workspace"
)

const all = ".vmctl/workspaces"

// beside runs a program in a home. The shell functions play what happens between two of its commands.
func beside(t *testing.T, home, functions, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", functions + "\n" + program, "workspace"}, args...)...)
	cmd.Dir, cmd.Stdin = home, strings.NewReader("record\npath\nown\n")
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("it ended with %v", err)
	}
	return string(out)
}

// A list beside the removal of the last other workspace is whole: nothing is left, and that is no failure.
func TestListBesideRemovals(t *testing.T) {
	for name, c := range map[string]struct{ functions, want string }{
		"before the folder is entered":   {`cd() { rm -rf ` + all + `; command cd "$@"; }`, ""},
		"before the record is looked at": {`cd() { command cd "$@"; s=$?; case $1 in /*) rm -rf a;; esac; return $s; }`, ""},
		"nothing":                        {"", "W record\nN a\nP it was not completed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			must(t, os.MkdirAll(filepath.Join(home, all, "a"), 0o700))
			must(t, os.WriteFile(filepath.Join(home, all, "a/mark"), []byte("record\npath\nown\n"), 0o600))
			if got := beside(t, home, c.functions, workspace.List); got != c.want {
				t.Errorf("it says\n%s\nnot\n%s", got, c.want)
			}
		})
	}
}

// A workspace is begun although another one's removal takes the empty folder of all away.
func TestBeginBesideARemoval(t *testing.T) {
	home := t.TempDir()
	removed := `mkdir() { if [ -z "$once" ]; then once=1; return 1; fi; command mkdir "$@"; }`
	beside(t, home, removed, workspace.Begin, "a", filepath.Join(home, "ws"))
	if _, err := os.Stat(filepath.Join(home, all, "a/mark")); err != nil {
		t.Error(err)
	}
}
