// Package sshfs shows folders of servers on this host through the program sshfs. It alone mounts and unmounts. Mounts are
// found by what the kernel lists; no call waits for a server that does not answer.
package sshfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"vmctl/internal/process"
)

// Host is this host, as its user's commands see it.
type Host struct {
	Env []string // of the programs: NAME=value, all of it
}

// Mount is a mount of sshfs.
type Mount struct {
	Source string // NAME:FOLDER, as Request has them
	Path   string // absolute, without symbolic links
}

// Request describes a mount that is to be made.
type Request struct {
	// Name names the server in the list of mounts; it has neither a colon nor a slash. The transport decides which one it is.
	Name   string
	Folder string // of the server, absolute
	Path   string // an empty folder of this host, absolute and without symbolic links
	// Transport is the program, with its arguments, that serves SFTP on its standard streams: sshfs starts it, and again
	// after a loss of the connection if Options has reconnect. It finds the working directory and the environment of sshfs.
	Transport []string
	Options   []string // of sshfs, each as it follows -o
}

// Source returns the source of the mount in the list of mounts.
func (r Request) Source() string { return r.Name + ":" + r.Folder }

// The programs. Debian's package fuse3 has fusermount3.
const (
	program     = "sshfs"
	unmounter   = "fusermount3"
	unmounterV2 = "fusermount"
)

// The limits of waits.
const (
	// answerLimit is the time in which a mount that works answers.
	answerLimit = 5 * time.Second
	// endLimit is the time in which the process of a mount that is gone ends.
	endLimit = 10 * time.Second
)

// Missing returns the programs that this host lacks to mount.
func (h Host) Missing() []string {
	var all []string
	if !h.has(program) {
		all = append(all, program)
	}
	if !h.has(unmounter) && !h.has(unmounterV2) {
		all = append(all, unmounter)
	}
	return all
}

func (h Host) has(name string) bool {
	_, err := process.LookPath(name, "/", h.Env)
	return err == nil
}

// Mount makes a mount, and returns once it serves its files. If it fails, nothing is mounted.
func (h Host) Mount(ctx context.Context, r Request) error {
	said, err := h.run(ctx, program, append(arguments(r), r.Source(), r.Path)...)
	if err != nil {
		if said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return fmt.Errorf("mount %s: %w", r.Path, err)
	}
	return nil
}

// arguments returns the arguments of sshfs before the source and the folder.
func arguments(r Request) []string {
	args := []string{"-o", "ssh_command=" + escaped(shell(r.Transport))}
	for _, o := range r.Options {
		args = append(args, "-o", o)
	}
	return args
}

// shell returns a command that sshfs can start: sshfs splits at blanks, and knows no quotes. A shell puts the blanks back.
func shell(command []string) string {
	const blank = `'"$(printf` + "\t" + `'\040')"'`
	words := make([]string, 0, len(command))
	for _, word := range command {
		quoted := "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		words = append(words, strings.ReplaceAll(quoted, " ", blank))
	}
	return "sh -c exec\t" + strings.Join(words, "\t")
}

// escaped returns a value as libfuse reads it after -o, where a comma separates options.
func escaped(value string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(value)
}

// Unmount ends a mount and its process, and waits for both. A mount that is gone is no error. A mount that processes use is a
// *BusyError, and stays. A mount that does not answer is ended with its process first.
func (h Host) Unmount(ctx context.Context, m Mount) error {
	if h.Answers(ctx, m.Path) != nil {
		if err := h.endServers(ctx, m); err != nil {
			return fmt.Errorf("unmount %s: %w", m.Path, err)
		}
	}
	said, err := h.unmount(ctx, m.Path)
	there, listed := isMounted(m)
	switch {
	case listed != nil:
		return fmt.Errorf("unmount %s: %w", m.Path, listed)
	case there:
		if busy := holders(m.Path); len(busy) > 0 {
			return &BusyError{Path: m.Path, Holders: busy}
		}
		return fmt.Errorf("unmount %s: %w", m.Path, errors.Join(err, errors.New(said)))
	}
	ending, stop := context.WithTimeout(ctx, endLimit)
	defer stop()
	if h.awaitServers(ending, m) == nil {
		return nil
	}
	if err := h.endServers(ctx, m); err != nil {
		return fmt.Errorf("unmount %s: %w", m.Path, err)
	}
	return nil
}

func (h Host) unmount(ctx context.Context, path string) (said string, err error) {
	name := unmounter
	if !h.has(name) {
		name = unmounterV2
	}
	return h.run(ctx, name, "-u", path)
}

func isMounted(m Mount) (bool, error) {
	all, err := List()
	return slices.Contains(all, m), err
}

// servers returns the processes of sshfs that serve a mount.
func (h Host) servers(ctx context.Context, m Mount) ([]process.Identity, error) {
	found, err := process.Host{}.Find(ctx, func(argv []string) bool {
		n := len(argv)
		return n > 2 && argv[n-2] == m.Source && argv[n-1] == m.Path && strings.HasSuffix("/"+argv[0], "/"+program)
	})
	if errors.Is(err, os.ErrPermission) { // those are of other users
		err = nil
	}
	return found, err
}

func (h Host) awaitServers(ctx context.Context, m Mount) error {
	all, err := h.servers(ctx, m)
	if err != nil {
		return err
	}
	return process.Host{}.Wait(ctx, all...)
}

// endServers ends the processes of sshfs that serve a mount, by force.
func (h Host) endServers(ctx context.Context, m Mount) error {
	all, err := h.servers(ctx, m)
	if err != nil {
		return err
	}
	return process.Each(all, func(id process.Identity) error {
		_, err := process.Host{}.Force(id)
		var refused *process.RefusedError
		if errors.As(err, &refused) && refused.Verdict == process.Gone {
			return nil
		}
		if err == nil {
			err = process.Host{}.Wait(ctx, id)
		}
		return err
	})
}

// StaleError reports that a mount does not answer.
type StaleError struct{ Why string }

// Error gives the reason.
func (e *StaleError) Error() string { return e.Why }

// answer asks for the file system, and for a name that is not in it: the kernel and sshfs keep answers about what is there for
// a while, and would go on to give them without a server.
const answer = `stat -f -- "$1" >/dev/null && { [ -e "$1/.vmctl-$$" ] || :; }`

// Answers returns a *StaleError unless the file system at a path answers. Another process asks: one that waits for a file system
// may not be ended by anybody.
func (h Host) Answers(ctx context.Context, path string) error {
	limited, stop := context.WithTimeout(ctx, answerLimit)
	defer stop()
	said, err := h.run(limited, "sh", "-c", answer, "sh", path)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return &StaleError{Why: fmt.Sprintf("it gave no answer within %s", answerLimit)}
	case said == "":
		said = err.Error()
	}
	return &StaleError{Why: said}
}
