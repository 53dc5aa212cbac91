package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Host is a provider whose VMs can be entered.
type Host interface {
	// Enter returns the inside of a running VM, as it was observed. values holds the spec's
	// attributes or the record's, with the login in them. The caller closes the guest, which
	// lasts as long as this run of the VM: after a restart the caller enters again. Enter
	// need not connect; the first command does. The error gives the reason if there is no way
	// into the VM; a *NotYetError says that there may be one soon.
	Enter(ctx context.Context, o Object, values cty.Value) (Guest, error)
}

// NotYetError reports that there is no way into a VM yet: it has just started, or could not be read.
type NotYetError struct{ Err error }

// Error gives the reason.
func (e *NotYetError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NotYetError) Unwrap() error { return e.Err }

// Guest is the inside of a VM that runs, or this host. Several goroutines may use it. One
// connection serves many commands. A connection that was lost is noticed within seconds, and
// the next call opens another one; no command is ever run twice.
type Guest interface {
	// Run runs a command to its end: until it has ended and nobody holds its outputs open.
	//
	// Without an error, the command ran, and Output tells how it ended: a status other than 0
	// is no error. A program that does not exist has status 127, one that cannot be executed
	// 126, as in a shell.
	//
	// An error says nothing about the command's result, and never repeats its arguments. A
	// *FateError says that the command may have run, in part or in whole, and may still be
	// running: the connection was lost, ctx or the guest ended, or Stdin or Stdout failed. With
	// any other error the command did not begin: the guest could not be reached, Dir does not
	// exist, the command is not Valid.
	//
	// When ctx ends, Run ends the command by force and returns: on this host and in sim with
	// its process group; over SSH with the means of the server, of which OpenSSH ends the
	// process group and Dropbear the process. Whatever the server does, the command's input and
	// outputs are closed.
	Run(ctx context.Context, c Command) (Output, error)
	// Dial connects to a server inside: network "unix" with the path of a socket, absolute or
	// relative to the user's home, or "tcp" with a host and a port as the guest sees them. ctx
	// limits connecting only. Reading and writing may have no deadlines. The connection
	// has a method CloseWrite. It ends with the guest.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Close ends the guest: the commands that run through it as if their ctx had ended, the
	// connections, and every later call, with net.ErrClosed. The VM runs on.
	Close() error
}

// LocalGuest is a guest whose commands are processes of this host.
type LocalGuest interface {
	// Locally returns the folder of this host in which Run runs a command, absolute, and its whole environment. It is for
	// commands that share a terminal with this process, which Run cannot give them.
	Locally(c Command) (dir string, env []string)
}

// Command is a command for the inside of a VM or for this host.
type Command struct {
	// Args holds the program and its arguments, which it gets unchanged: no shell reads them. A
	// program without a slash is looked for in the guest's PATH. The guest's users may see
	// them: a secret belongs into Env or Stdin.
	Args []string
	// Dir is the working directory, absolute or relative to the user's home; "": the home.
	Dir string
	// Env holds further variables (NAME=value); of two with one name the later one counts. On
	// the way into the guest no argument of any process shows them.
	Env []string
	// Stdin is the input; nil: none. If it fails, the command is ended: it must not take a part
	// for the whole. Run may return during a Read, when the command ended and did not wait for
	// its input.
	Stdin io.Reader
	// Stdout and Stderr get the outputs, from one goroutine each; nil: they are discarded. A
	// Write that fails ends the command. Nothing is written after Run has returned.
	Stdout, Stderr io.Writer
}

// Output tells how a command ended.
type Output struct {
	// Status is the exit status; 128 and the signal's number, if a signal ended the command.
	Status int
	// Stderr holds the end of the command's standard error, at most StderrLimit bytes, also if
	// Command.Stderr got all of it.
	Stderr string
}

// StderrLimit is the size of the longest Output.Stderr, in bytes.
const StderrLimit = 64 << 10

// variable matches a variable with a name that every shell can export.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// Valid returns the reason why no guest can run the command; nil: there is none.
func (c Command) Valid() error {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return errors.New("there is no program to run")
	}
	if slices.ContainsFunc(slices.Concat(c.Args, c.Env, []string{c.Dir}), func(s string) bool { return strings.ContainsRune(s, 0) }) {
		return fmt.Errorf("run %q: an argument, a variable or the directory has a zero byte in it", c.Args[0])
	}
	for _, v := range c.Env {
		if !variable.MatchString(v) {
			name, _, _ := strings.Cut(v, "=") // the value may be secret
			return fmt.Errorf("run %q: %q is not the name of a variable", c.Args[0], name)
		}
	}
	return nil
}

// FateError reports that a command may have run: in part, in whole, or not at all, and that it
// may still be running. Whoever goes on has to find out; Guest never runs it again.
type FateError struct {
	Program string // Args[0]
	Err     error  // why its end was not seen
}

// Error names the program and the cause.
func (e *FateError) Error() string {
	return fmt.Sprintf("run %q: it is unknown what it did: %v", e.Program, e.Err)
}

// Unwrap returns the cause.
func (e *FateError) Unwrap() error { return e.Err }
