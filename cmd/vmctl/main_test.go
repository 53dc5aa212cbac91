package main

import (
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"vmctl/cmd/internal/cli"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
)

// spec is a spec that wants nothing.
const spec = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}
`

func TestMain(m *testing.M) {
	// Scripts wait more than they work.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	testscript.Main(dispositions{m}, map[string]func(){"vmctl": patiently(withBoxes), "visit": visit, "terraform-stand-in": standIn})
}

// withBoxes runs vmctl with a kind that only tests have: a box inside a VM.
func withBoxes() { start(cli.Env{Inside: []providers.Type{box.Type(nil)}}) }

// TestScripts runs the real program where no hypervisor is needed.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE") == "1",
		Setup: func(env *testscript.Env) error {
			source, err := os.Getwd()
			if err != nil {
				return err
			}
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
			programs := under{}
			env.Values[underKey{}] = programs
			env.Defer(programs.end)
			env.Vars = append(env.Vars, "HOME="+home, "XDG_STATE_HOME="+home+"/s", "DATA="+home+"/d", "SOURCE="+source)
			return nil
		},
		Cmds: commands(),
	})
}

func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := simCommands()
	maps.Copy(all, signalCommands())
	maps.Copy(all, hostCommands())
	maps.Copy(all, beginCommands())
	maps.Copy(all, jobCommands())
	all["exits"] = exits
	all["hold-disk"] = holdDisk
	all["install"] = install
	return all
}

// exits runs vmctl and demands an exit code: exits CODE ARG…
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

// install replaces the vmctl in the script's home with a build of a version: install VERSION.
func install(ts *testscript.TestScript, _ bool, args []string) {
	path := filepath.Join(ts.Getenv("HOME"), "vmctl")
	build := exec.Command("go", "build", "-ldflags", "-X main.version="+args[0], "-o", path+".new", ".")
	build.Dir = ts.Getenv("SOURCE")
	if out, err := build.CombinedOutput(); err != nil {
		ts.Fatalf("build vmctl %s: %v\n%s", args[0], err, out)
	}
	ts.Check(os.Rename(path+".new", path))
}
