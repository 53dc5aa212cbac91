package sshfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"vmctl/internal/process"
)

// MissingError reports that this host lacks a program.
type MissingError struct{ Program string }

// Error names the program.
func (e *MissingError) Error() string { return e.Program + " is not installed" }

// run runs a program until it has ended, or until ctx ends: then the program is forced to end and left alone, since nobody can
// end a process that waits for a file system. It returns the errors that the program printed.
func (h Host) run(ctx context.Context, name string, args ...string) (said string, err error) {
	path, err := process.LookPath(name, "/", h.Env)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &MissingError{Program: name}
	}
	if err != nil {
		return "", err
	}
	errs, err := os.CreateTemp("", "vmctl-mount-") // no pipe: what stays behind may hold it open
	if err != nil {
		return "", err
	}
	defer func() { _ = errs.Close() }() //nolint:errcheck // it is gone
	if err := os.Remove(errs.Name()); err != nil {
		return "", err
	}
	child, err := process.Host{}.Start(process.Command{Path: path, Args: args, Env: h.Env, Dir: "/", Stderr: errs})
	if err != nil {
		return "", err
	}
	err = child.Wait(ctx)
	if _, ended := process.Status(err); !ended {
		return "", errors.Join(fmt.Errorf("%s: %w", name, context.Cause(ctx)), child.Force())
	}
	text, unread := io.ReadAll(io.NewSectionReader(errs, 0, 4<<10))
	if unread != nil {
		return "", errors.Join(err, unread)
	}
	return strings.TrimSpace(string(text)), err
}
