//go:build unix

package guest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/internal/sshx"
	"vmctl/internal/sshx/sshtest"
	"vmctl/providers"
	"vmctl/providers/guest"
)

// A command in front of a terminal gets its arguments, its folder and its environment unchanged, no process shows the
// variables among its arguments, and no script is left behind.
func TestShell(t *testing.T) {
	s := serve(t, sshtest.Server{MaxSessions: 10})
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	const odd = "it's $(touch x);\n`y` -"
	dir := filepath.Join(s.home, odd)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		command providers.Command
		typed   string
	}{
		"a command": {command: providers.Command{Args: []string{"sh", "-c", `printf '%s|%s|' "$1" "$TOKEN"; pwd; cat; exit 7`, "sh", odd}}, typed: "typed\n"},
		"a shell":   {typed: `printf '%s|%s|' "` + "it's \\$(touch x);\n\\`y\\` -" + `" "$TOKEN"; pwd; echo typed; exit 7` + "\n"},
	} {
		in := input(t, test.typed)
		test.command.Dir, test.command.Env = dir, []string{"TOKEN=" + odd, "SHELL=/bin/sh"}
		var out, problems strings.Builder
		status, err := guest.Shell(t.Context(), s.target, test.command, sshx.Terminal{In: in, Out: &out, Err: &problems})
		if want := odd + "|" + odd + "|" + dir + "\ntyped\n"; status != 7 || err != nil || out.String() != want {
			t.Errorf("%s: status %d, %v, %q, want\n%q, got\n%q", name, status, err, &problems, want, &out)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("%s: left are %v, %v", name, left, err)
		}
	}
	if status, err := guest.Shell(t.Context(), s.target, providers.Command{Dir: filepath.Join(s.home, "nowhere")}, sshx.Terminal{
		In: input(t, ""), Out: &strings.Builder{}, Err: &strings.Builder{},
	}); status == 0 || err != nil {
		t.Errorf("without its folder: status %d, %v", status, err)
	}
}

// input returns a file with a text.
func input(t *testing.T, text string) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "typed")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, f)
	return f
}
