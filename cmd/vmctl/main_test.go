package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"vmctl": main})
}

// TestScripts runs the real program where no hypervisor is needed.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") == "1",
		Setup: func(env *testscript.Env) error {
			home, err := os.MkdirTemp("", "h") //nolint:usetesting // the path of a script's folder is too long for sockets
			if err != nil {
				return err
			}
			env.Defer(func() {
				if err := os.RemoveAll(home); err != nil {
					t.Error(err)
				}
			})
			env.Defer(func() { endAll(t, home) })
			env.Vars = append(env.Vars, "HOME="+home, "XDG_STATE_HOME="+home+"/s", "DATA="+home+"/d")
			return nil
		},
		Cmds: commands(),
	})
}

func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := simCommands()
	all["exits"] = exits
	return all
}

// exits runs vmctl and demands a very exit code: exits CODE ARG…
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARG...")
	}
	code := 0
	err := ts.Exec("vmctl", args[1:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("vmctl %v: %v", args[1:], err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("vmctl %v: exit code %d, want %s", args[1:], code, args[0])
	}
}
