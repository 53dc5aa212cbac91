// Package wsl asks wsl.exe about the distributions of Windows Subsystem for Linux, shuts them down and
// unregisters them. wsl.exe may hang, fail, or report success without effect. So each call has a deadline,
// and no call is believed: two sources that agree, its listing and the registrations that WSL keeps in the
// registry, tell which distributions there are.
package wsl

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"vmctl/internal/process"
)

// Host gives access to the distributions of this user on this machine. The zero Host has no WSL.
type Host struct {
	Program   string   // wsl.exe, an absolute path; "": this machine has no WSL
	Env       []string // of wsl.exe
	Processes process.Host
	// Registrations lists the registrations of WSL. nil: they are read from the registry of Windows.
	Registrations func() ([]Registration, error)
	// Limit returns the longest time for a call with such arguments. nil: the usual one, from 10 to 30
	// seconds.
	Limit func(args []string) time.Duration

	// Played answers in the place of wsl.exe, in searches whose many calls are no processes. nil: wsl.exe runs.
	Played func(args []string) (output []byte, status int, hangs bool)
}

// Registration is a distribution that WSL knows.
type Registration struct {
	Name   string // WSL ignores the case of names
	Folder string // which has its root disk
	Disk   string // its root disk, an absolute path; the file may be missing
}

// Has reports whether the registration has a name, by the rules of WSL.
func (r Registration) Has(name string) bool { return strings.EqualFold(r.Name, name) }

// IsIn reports whether the root disk of the registration belongs into a folder.
func (r Registration) IsIn(folder string) bool {
	return samePath(r.Folder, folder) || samePath(resolved(r.Folder), resolved(folder))
}

func samePath(a, b string) bool { return strings.EqualFold(filepath.Clean(a), filepath.Clean(b)) }

// resolved returns a path without links; the path itself if nothing has it.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// State is the run state of a distribution.
type State string

// The run states. Busy: it is being installed, converted, exported or unregistered.
const (
	Stopped State = "stopped"
	Running State = "running"
	Busy    State = "busy"
)

// Distribution is a registration with its run state.
type Distribution struct {
	Registration
	State State
}

// Exists reports whether this machine has WSL.
func (h Host) Exists() bool { return h.Program != "" }

// Registered lists the registrations of WSL. It runs nothing.
func (h Host) Registered() ([]Registration, error) {
	read := h.Registrations
	if read == nil {
		read = registered
	}
	all, err := read()
	if err != nil {
		return nil, fmt.Errorf("read the registrations of WSL: %w", err)
	}
	return all, nil
}

// List returns all distributions with their run states. An error means that nothing is known of any of
// them: wsl.exe hung or failed, its listing is cut or garbled, or it does not agree with the registrations.
func (h Host) List(ctx context.Context) ([]Distribution, error) {
	known, err := h.Registered()
	if err != nil {
		return nil, err
	}
	rows, err := h.rows(ctx)
	if err != nil {
		return nil, err
	}
	return join(known, rows)
}

// join gives each registration its run state. It fails unless both sources have the same names.
func join(known []Registration, rows []row) ([]Distribution, error) {
	var all []Distribution
	for _, r := range known {
		found := rowOf(rows, r.Name)
		if found == nil {
			return nil, fmt.Errorf("wsl.exe --list does not show %s, which is registered", r.Name)
		}
		all = append(all, Distribution{Registration: r, State: found.state})
	}
	for _, r := range rows {
		if Find(all, r.name) == nil {
			return nil, fmt.Errorf("wsl.exe --list shows %s, which is not registered", r.name)
		}
	}
	return all, nil
}

// Find returns the distribution of a name; nil: there is none.
func Find(all []Distribution, name string) *Distribution {
	for i := range all {
		if all[i].Has(name) {
			return &all[i]
		}
	}
	return nil
}

// Terminate ends a distribution at once, without asking its guest. List tells whether it did.
func (h Host) Terminate(ctx context.Context, name string) error {
	_, err := h.call(ctx, "--terminate", name)
	return err
}

// PowerOff asks the guest of a running distribution to shut down. It would start one that is stopped.
func (h Host) PowerOff(ctx context.Context, name string) error {
	_, err := h.call(ctx, "--distribution", name, "--user", "root", "--exec", "/bin/sh", "-c", "sync; systemctl poweroff || poweroff")
	return err
}

// ErrRuns says that a distribution was not unregistered, because it runs or is busy.
var ErrRuns = errors.New("it still runs")

// Unregister terminates a distribution, and removes its registration and its root disk once it is seen
// stopped. It does nothing to one that has another folder by now, and succeeds only after it has seen that
// the registration is gone. It returns what it did, in words.
func (h Host) Unregister(ctx context.Context, r Registration) (did []string, err error) {
	now, err := h.same(ctx, r)
	if err != nil || now == nil {
		return nil, err
	}
	if err := h.Terminate(ctx, now.Name); err != nil {
		return nil, fmt.Errorf("unregister %s: %w", r.Name, err)
	}
	did = append(did, "terminated the distribution "+now.Name)
	now, err = h.same(ctx, r)
	switch {
	case err != nil || now == nil:
		return did, err
	case now.State != Stopped:
		return did, fmt.Errorf("unregister %s: %w: it is %s after wsl.exe --terminate", r.Name, ErrRuns, now.State)
	}
	_, failed := h.call(ctx, "--unregister", now.Name)
	now, err = h.same(ctx, r)
	switch {
	case err != nil:
		return did, fmt.Errorf("unregister %s: could not confirm it: %w", r.Name, errors.Join(failed, err))
	case now != nil:
		return did, errors.Join(fmt.Errorf("unregister %s: it is still registered", r.Name), failed)
	}
	return append(did, "unregistered the distribution "+r.Name), nil
}

// same returns the distribution of a registration as it is now; nil: it is gone. It fails if another folder
// has its name.
func (h Host) same(ctx context.Context, r Registration) (*Distribution, error) {
	all, err := h.List(ctx)
	if err != nil {
		return nil, err
	}
	now := Find(all, r.Name)
	if now != nil && !now.IsIn(r.Folder) {
		return nil, fmt.Errorf("the distribution %s is in %s by now, and was in %s", r.Name, now.Folder, r.Folder)
	}
	return now, nil
}
