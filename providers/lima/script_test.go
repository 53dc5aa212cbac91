//go:build unix

package lima_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"vmctl/internal/process"
	"vmctl/internal/real"
)

// program builds vmctl once, with the stand-in in the place of vmctl-lima, and returns the folder of vmctl.
var program = sync.OnceValues(func() (bin string, err error) {
	if _, err := standIn(); err != nil {
		return "", err
	}
	path, err := built("bin/vmctl", "vmctl/cmd/vmctl")
	return filepath.Dir(path), err
})

// TestScripts runs vmctl itself on stand-ins for vmctl-lima and QEMU: all of it but Lima and the guest. Beside the
// commands of testscript there are:
//
//	exits CODE ARG…      runs vmctl, and demands an exit code
//	splice FILE OLD NEW  replaces text in a file
//	instance NAME ROLE   prints the pid of the process of an instance: agent, qemu
//	kill9 NAME ROLE      ends that process at once
//	holder DISK          prints the instance that has locked a disk; nothing: it is free
//	booted NAME          lets the slow guest of an instance be up
//	interrupt TEXT ARG…  runs vmctl, asks it to end once it says TEXT, and demands exit code 130
//	killed TEXT ARG…     runs vmctl, and kills it once it says TEXT
func TestScripts(t *testing.T) {
	real.Long(t)
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), RequireExplicitExec: true, UpdateScripts: os.Getenv("UPDATE") == "1",
		Setup: func(env *testscript.Env) error {
			h := newHouse(t)
			h.home = filepath.Join(h.data, "d", "lima-here")
			env.Values[houseKey{}] = h
			image, err := os.ReadFile(filepath.Join(h.data, "one.img"))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(env.WorkDir, "one.img"), image, 0o600); err != nil {
				return err
			}
			main := filepath.Join(env.WorkDir, "main.vmctl.hcl")
			if _, err := os.Stat(main); errors.Is(err, fs.ErrNotExist) {
				if err := os.WriteFile(main, []byte(oneVM), 0o600); err != nil {
					return err
				}
			}
			// What vmctl looks for on the PATH before it plans: nothing runs it.
			for _, name := range []string{"qemu-system-x86_64", "qemu-system-aarch64", "qemu-img", "ssh"} {
				if err := os.WriteFile(filepath.Join(h.data, name), nil, 0o700); err != nil { //nolint:gosec // a program
					return err
				}
			}
			env.Vars = append(env.Vars, "HOME="+h.data, "XDG_STATE_HOME="+h.data+"/s", "VMCTL_DATA_DIR="+h.data+"/d", "LIMA="+h.home, "IMAGE="+h.data+"/one.img",
				"PATH="+bin+":"+os.Getenv("PATH")+":"+h.data)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "splice": splice, "interrupt": interrupt, "killed": killed,
			"instance": func(ts *testscript.TestScript, _ bool, args []string) {
				pids := ""
				for _, id := range processesOf(ts, args[0], args[1]) {
					pids += fmt.Sprintln(id.PID)
				}
				fmt.Fprint(ts.Stdout(), pids) // also if there is none: else the output of the last command stays
			},
			"kill9": func(ts *testscript.TestScript, _ bool, args []string) {
				all := processesOf(ts, args[0], args[1])
				if len(all) == 0 {
					ts.Fatalf("no %s of %s runs", args[1], args[0])
				}
				for _, id := range all {
					ts.Check(syscall.Kill(id.PID, syscall.SIGKILL))
				}
				ts.Check(process.Host{}.Wait(context.Background(), all...))
			},
			"holder": func(ts *testscript.TestScript, _ bool, args []string) {
				target, err := os.Readlink(filepath.Join(houseOf(ts).home, "_disks", args[0], "in_use_by"))
				if errors.Is(err, fs.ErrNotExist) {
					target, err = "", nil
				}
				ts.Check(err)
				fmt.Fprint(ts.Stdout(), strings.TrimPrefix(filepath.Base(target), "."))
			},
			"booted": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.WriteFile(filepath.Join(houseOf(ts).home, args[0], "booted"), nil, 0o600))
			},
		},
	})
}

// oneVM is the spec of a script that has none of its own.
const oneVM = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}

provider "lima" "here" {}

disk "cache" {
  provider = provider.lima.here
  size     = "4MiB"
  format   = "raw"
}

vm "dev" {
  provider = provider.lima.here
  running  = true
  image    = "one.img"
  cpus     = 1
  memory   = "256MiB"
  accel    = "tcg"
  # template
  # params
  # triggers
  # timeouts

  root_disk {
    size = "2MiB"
  }

  additional_disk {
    disk = disk.cache
  }

  stop {
    grace = "60s"
    # force
  }
}
`

type houseKey struct{}

func houseOf(ts *testscript.TestScript) *house { return ts.Value(houseKey{}).(*house) }

// pidFileOf has the pid file in the arguments of each role.
var pidFileOf = map[string]string{"agent": "ha.pid", "qemu": "qemu.pid"}

func processesOf(ts *testscript.TestScript, name, role string) []process.Identity {
	all, err := process.Host{}.Find(context.Background(), func(argv []string) bool {
		return slices.Contains(argv, filepath.Join(houseOf(ts).home, name, pidFileOf[role]))
	})
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		ts.Fatalf("%v", err)
	}
	return all
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	code, err := 0, ts.Exec("vmctl", args[1:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("vmctl %v: exit code %d, want %s", args[1:], code, args[0])
	}
}

func splice(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o600))
}

// interrupt runs vmctl, and interrupts it once its output holds a text. The guest is busy until vmctl has said that it heard:
// interrupt TEXT INSTANCE COMMAND.
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	busy := filepath.Join(houseOf(ts).home, args[1], "busy")
	ts.Check(os.WriteFile(busy, nil, 0o600))
	heard := func() { ts.Check(os.Remove(busy)) }
	if code := signalAt(ts, syscall.SIGINT, args[0], args[2:], &watched{text: "Stopping: interrupted", then: heard}); code != 130 {
		ts.Fatalf("vmctl %v: exit code %d, want 130", args[2:], code)
	}
}

func killed(ts *testscript.TestScript, _ bool, args []string) {
	signalAt(ts, syscall.SIGKILL, args[0], args[1:], &watched{})
}

// signalAt runs vmctl, sends it a signal once its output holds a text, watches its output for another one too, and returns its
// exit code.
func signalAt(ts *testscript.TestScript, sig syscall.Signal, text string, args []string, later *watched) int {
	met := make(chan struct{})
	said := &watched{text: text, then: func() { close(met) }}
	both := io.MultiWriter(said, later)
	path, err := exec.LookPath(filepath.Join(strings.SplitN(ts.Getenv("PATH"), ":", 2)[0], "vmctl"))
	ts.Check(err)
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.Getenv("WORK"), both, both
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "VMCTL_DATA_DIR", "PATH"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-met:
		ts.Check(cmd.Process.Signal(sig))
		err = <-ended
	case err = <-ended:
		ts.Fatalf("vmctl %v ended before it said %q: %v\n%s", args, text, err, said.all)
	}
	fmt.Fprint(ts.Stdout(), said.all)
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		ts.Check(err)
		return 0
	}
	return exit.ExitCode()
}

// watched is a writer that does something once a text was written. One goroutine writes.
type watched struct {
	text string
	then func() // nil: nothing is done
	all  string
}

func (w *watched) Write(p []byte) (int, error) {
	w.all += string(p)
	if w.then != nil && strings.Contains(w.all, w.text) {
		w.then()
		w.then = nil
	}
	return len(p), nil
}
