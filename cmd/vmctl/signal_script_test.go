package main

import (
	"bytes"
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
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// signalCommands returns script commands that send signals to vmctl when it prints a text.
//
//	signalled CODE [SIGNAL TEXT]... -- ARG...
//
// runs vmctl, sends each SIGNAL as soon as vmctl has printed TEXT after the text of the
// signal before, and demands an exit code.
//
//	sockets
//
// lists the sockets in the data directory.
func signalCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){"signalled": signalled, "sockets": sockets}
}

func sockets(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(filepath.WalkDir(ts.Getenv("DATA"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type() == fs.ModeSocket {
			fmt.Fprintln(ts.Stdout(), path)
		}
		return err
	}))
}

// cue is a signal, and the text after which it is sent.
type cue struct {
	signal os.Signal
	text   string
}

// signalByName returns a signal that users send, by its name.
func signalByName(ts *testscript.TestScript, name string) os.Signal {
	switch name {
	case "INT":
		return os.Interrupt
	case "TERM":
		return syscall.SIGTERM
	case "HUP":
		return syscall.SIGHUP
	default:
		ts.Fatalf("no signal %s", name)
		return nil
	}
}

func signalled(ts *testscript.TestScript, _ bool, args []string) {
	dashes := slices.Index(args, "--")
	if dashes < 1 || dashes%2 == 0 {
		ts.Fatalf("usage: signalled CODE [SIGNAL TEXT]... -- ARG...")
	}
	var cues []cue
	for i := 1; i < dashes; i += 2 {
		cues = append(cues, cue{signal: signalByName(ts, args[i]), text: args[i+1]})
	}
	path, err := exec.LookPath("vmctl")
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience+time.Minute) // vmctl prints its stacks before
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args[dashes+1:]...)
	cmd.WaitDelay = time.Minute
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environ(ts)
	out, problem := obey(cmd, cues)
	_, err = ts.Stdout().Write(out.stdout.Bytes())
	_, other := ts.Stderr().Write(out.stderr.Bytes())
	ts.Check(errors.Join(err, other, problem))
	if out.cues != len(cues) {
		ts.Fatalf("vmctl %v: never said %q", args[dashes+1:], cues[out.cues].text)
	}
	if code := strconv.Itoa(cmd.ProcessState.ExitCode()); code != args[0] {
		ts.Fatalf("vmctl %v: exit code %s, want %s", args[dashes+1:], code, args[0])
	}
}

// environ returns the variables that a script may set.
func environ(ts *testscript.TestScript) []string {
	var all []string
	for _, name := range []string{"PATH", "HOME", "XDG_STATE_HOME", "VMCTL_DATA_DIR", "VMCTL_LOG"} {
		all = append(all, name+"="+ts.Getenv(name))
	}
	return all
}

// said holds the output of a command, and the number of cues that were given.
type said struct {
	mu             sync.Mutex
	stdout, stderr bytes.Buffer
	heard          bytes.Buffer // of both, since the last cue
	cues           int
	send           func(cue) error
	wanted         []cue
	err            error
}

// obey runs cmd to its end and sends the signals.
func obey(cmd *exec.Cmd, cues []cue) (*said, error) {
	s := &said{wanted: cues, send: func(c cue) error { return cmd.Process.Signal(c.signal) }}
	cmd.Stdout = ear(func(p []byte) { s.hear(&s.stdout, p) })
	cmd.Stderr = ear(func(p []byte) { s.hear(&s.stderr, p) })
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return s, errors.Join(err, s.err)
}

type ear func([]byte)

var _ io.Writer = ear(nil)

func (e ear) Write(p []byte) (int, error) {
	e(p)
	return len(p), nil
}

func (s *said) hear(stream *bytes.Buffer, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream.Write(p)
	s.heard.Write(p)
	for s.cues < len(s.wanted) {
		next := s.wanted[s.cues]
		_, rest, ok := strings.Cut(s.heard.String(), next.text)
		if !ok {
			return
		}
		s.heard.Reset()
		s.heard.WriteString(rest)
		s.cues++
		s.err = errors.Join(s.err, s.send(next))
	}
}
