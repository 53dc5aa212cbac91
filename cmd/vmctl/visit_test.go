package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vmctl/busy"
	config "vmctl/spec"
	"vmctl/state"
)

// visit is a program for scripts that works in a VM as vm exec does, until its input ends:
// visit ADDRESS. It stands in for vm exec, since a simulated VM has no login.
func visit() {
	if err := goInside(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func goInside(address string) error {
	addr, err := config.ParseAddress(address)
	if err != nil {
		return err
	}
	f := busy.Folder{Dir: filepath.Join(os.Getenv("DATA"), "busy")}
	leave, err := f.Enter(context.Background(), addr, state.Holder{
		PID: os.Getpid(), Host: "here", Command: "visit " + address, Since: time.Now(),
	})
	if err != nil {
		return err
	}
	fmt.Println("inside")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return leave()
}

// under holds the programs that a script has begun, by the names that the script gave them.
type under map[string]*begun

type begun struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	output *bufio.Reader
	said   strings.Builder
}

type underKey struct{}

// beginCommands returns script commands for programs that run beside a script.
//
//	begin NAME TEXT PROGRAM ARG…  starts one, and waits until a line that it writes holds TEXT
//	finish NAME CODE              ends its input, demands that exit code, and prints what it wrote
//	kill9-it NAME                 ends it at once
func beginCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){"begin": begin, "finish": finishBegun, "kill9-it": kill9It}
}

func begin(ts *testscript.TestScript, _ bool, args []string) {
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	b := &begun{cmd: exec.Command(path, args[3:]...)}
	b.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_STATE_HOME", "DATA", "VMCTL_DATA_DIR", "TMPDIR"} {
		b.cmd.Env = append(b.cmd.Env, name+"="+ts.Getenv(name))
	}
	stdin, err := b.cmd.StdinPipe()
	ts.Check(err)
	stdout, err := b.cmd.StdoutPipe()
	ts.Check(err)
	b.cmd.Stderr = b.cmd.Stdout
	b.stdin, b.output = stdin, bufio.NewReader(stdout)
	ts.Check(b.cmd.Start())
	ts.Value(underKey{}).(under)[args[0]] = b
	defer b.limit().Stop()
	for !strings.Contains(b.said.String(), args[1]) {
		line, err := b.output.ReadString('\n')
		b.said.WriteString(line)
		if err != nil {
			ts.Fatalf("%s never says %q: %v\n%s", args[2], args[1], err, b.said.String())
		}
	}
}

// taken returns the program that was begun under a name, and frees the name.
func taken(ts *testscript.TestScript, name string) *begun {
	all := ts.Value(underKey{}).(under)
	b, ok := all[name]
	if !ok {
		ts.Fatalf("nothing was begun as %s", name)
	}
	delete(all, name)
	return b
}

// limit kills the program after patience, as it hangs, unless the timer is stopped.
func (b *begun) limit() *time.Timer {
	return time.AfterFunc(patience, func() {
		b.cmd.Process.Kill() //nolint:errcheck // it may have ended by itself
	})
}

// wait reads the rest of the output and returns the exit code.
func (b *begun) wait() (int, error) {
	defer b.limit().Stop()
	_, read := io.Copy(&b.said, b.output)
	err := b.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return b.cmd.ProcessState.ExitCode(), errors.Join(read, err)
}

func finishBegun(ts *testscript.TestScript, _ bool, args []string) {
	b := taken(ts, args[0])
	ts.Check(b.stdin.Close())
	code, err := b.wait()
	ts.Check(err)
	fmt.Fprint(ts.Stdout(), b.said.String())
	if strconv.Itoa(code) != args[1] {
		ts.Fatalf("%s: exit code %d, want %s\n%s", args[0], code, args[1], b.said.String())
	}
}

func kill9It(ts *testscript.TestScript, _ bool, args []string) {
	b := taken(ts, args[0])
	ts.Check(b.cmd.Process.Kill())
	_, err := b.wait()
	ts.Check(err)
}

// end ends the programs that a script has left.
func (u under) end() {
	for _, b := range u {
		b.cmd.Process.Kill() //nolint:errcheck // it may have ended by itself
		b.wait()             //nolint:errcheck // see above
	}
}
