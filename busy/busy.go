// Package busy keeps vmctl from interrupting work inside a VM that its user did not allow to
// interrupt (DESIGN.md, rule 8).
//
// A command that works in a VM (vm exec, vm shell) shares the lock <data directory>/busy/<address>
// while it runs, with a record that names it. A command that takes a VM down first takes the lock
// <address>.door alone, so that no other command can enter. Then, unless it may interrupt them, it
// waits until the commands inside have ended, and takes the shared lock alone. The kernel frees
// both locks when their process ends, however it ends.
//
// Three packages apply the rule, and none of them knows these files:
//
//   - cli lists the commands inside (Inside writes nothing), and hands the list to the
//     planner as data.
//   - planner blocks a change that takes a busy VM down, unless its policy waits
//     (when_busy) or the user allowed it (--allow-interrupt), and names the holders.
//   - executor closes the VM right before the first step that takes it down, after
//     any wait and before the journal says that the step began, and opens it when the
//     change has ended. It also finds the VMs that became busy after the plan was made.
package busy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/pattern"
	"vmctl/spec"
	"vmctl/state"
)

// Folder is the folder busy of a data directory. Enter and Close create it.
type Folder struct{ Dir string }

// ClosedError reports that another command is taking a VM down, so that no command can enter it.
type ClosedError struct {
	Address spec.Address
	By      state.Holder // zero: its record cannot be read
}

// Error names the command that takes the VM down.
func (e *ClosedError) Error() string {
	if e.By == (state.Holder{}) {
		return fmt.Sprintf("%s is being taken down by another process", e.Address)
	}
	return fmt.Sprintf("%s is being taken down by %s", e.Address, e.By)
}

// OccupiedError reports that commands are inside a VM and did not end in time.
type OccupiedError struct {
	Address spec.Address
	Holders []state.Holder
	Waited  time.Duration // 0: they were not waited for
}

// Error names the first command inside, and counts the others.
func (e *OccupiedError) Error() string {
	text := fmt.Sprintf("%s is busy", e.Address)
	if e.Waited > 0 {
		text = fmt.Sprintf("%s is still busy after %s", e.Address, spec.FormatDuration(int64(e.Waited/time.Second)))
	}
	if len(e.Holders) > 0 {
		text += ": " + e.Holders[0].String()
	}
	if len(e.Holders) > 1 {
		text += fmt.Sprintf(", and %d more", len(e.Holders)-1)
	}
	return text
}

// Enter marks a VM as busy until leave is called or the process ends. It fails with a *ClosedError
// while another command takes the VM down.
func (f Folder) Enter(ctx context.Context, addr spec.Address, me state.Holder) (leave func() error, err error) {
	if err := f.makeDir(); err != nil {
		return nil, err
	}
	if err := f.checkOpen(ctx, addr); err != nil {
		return nil, err
	}
	stay, err := lockfile.Share(ctx, lockfile.Request{Path: f.inside(addr), Owner: lockfile.Owner(me)})
	var held *lockfile.HeldError
	switch {
	case errors.As(err, &held) && ctx.Err() == nil:
		return nil, &ClosedError{Address: addr, By: state.Holder(held.Owner)}
	case err != nil:
		return nil, fmt.Errorf("enter %s: %w", addr, err)
	}
	// Whoever closed the door meanwhile may have looked inside before: it counts.
	if err := f.checkOpen(ctx, addr); err != nil {
		return nil, errors.Join(err, stay.Release())
	}
	return stay.Release, nil
}

// checkOpen fails with a *ClosedError while another command keeps the VM closed.
func (f Folder) checkOpen(ctx context.Context, addr spec.Address) error {
	by, closed, err := lockfile.Holder(ctx, f.closedPath(addr))
	if err != nil {
		return fmt.Errorf("enter %s: %w", addr, err)
	}
	if closed {
		return &ClosedError{Address: addr, By: state.Holder(by)}
	}
	return nil
}

// Inside lists the commands inside each VM, and leaves out VMs without any. It writes nothing, and
// makes no other command wait.
func (f Folder) Inside(ctx context.Context, addrs []spec.Address) (map[spec.Address][]state.Holder, error) {
	all := map[spec.Address][]state.Holder{}
	if _, err := os.Stat(f.Dir); errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	for _, addr := range addrs {
		holders, err := f.holders(ctx, addr)
		if err != nil {
			return nil, err
		}
		if len(holders) > 0 {
			all[addr] = holders
		}
	}
	return all, nil
}

func (f Folder) holders(ctx context.Context, addr spec.Address) ([]state.Holder, error) {
	sharers, err := lockfile.Sharers(ctx, f.inside(addr))
	if err != nil {
		return nil, fmt.Errorf("list the holders inside %s: %w", addr, err)
	}
	return holdersOf(sharers), nil
}

func holdersOf(owners []lockfile.Owner) []state.Holder {
	var all []state.Holder
	for _, o := range owners {
		all = append(all, state.Holder(o))
	}
	slices.SortFunc(all, func(a, b state.Holder) int { return a.Compare(b) })
	return all
}

func (f Folder) makeDir() error {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of busy VMs: %w", err)
	}
	return nil
}

// plainName matches an address that can serve as a file name, also on a file system that does not
// distinguish upper from lower case. Such a name has exactly one dot, so it is never the .door or
// the .seat-N file of another address.
var plainName = pattern.New(`^[a-z_]+\.[a-z0-9_-]{1,48}$`)

// fileName returns the name of an address's lock: the address itself if it is short and plain,
// else a digest of it. Two addresses never have the same name.
func fileName(addr spec.Address) string {
	text := addr.String()
	if plainName.MatchString(text) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return string(addr.Kind) + "=" + hex.EncodeToString(sum[:16]) // no address holds an equals sign outside of a key
}

func (f Folder) inside(addr spec.Address) string     { return filepath.Join(f.Dir, fileName(addr)) }
func (f Folder) closedPath(addr spec.Address) string { return f.inside(addr) + ".door" }

// Tidy removes the records of commands that were killed while they were inside a VM or kept it
// closed. Such records hold no lock. Tidy makes no running command wait.
func (f Folder) Tidy(ctx context.Context) error {
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for those at work in VMs: %w", err)
	}
	cleared := map[string]bool{}
	for _, e := range entries {
		lock, isRecord := lockOf(e.Name())
		if !isRecord || cleared[lock] {
			continue
		}
		cleared[lock] = true
		var held *lockfile.HeldError
		if _, err := lockfile.Clear(ctx, filepath.Join(f.Dir, lock)); err != nil && !errors.As(err, &held) {
			return fmt.Errorf("remove what was left by those at work in VMs: %w", err)
		}
	}
	return nil
}

// lockOf returns the lock to which a record belongs, also for the record of one seat. The name of
// a lock never contains ".seat-" itself.
func lockOf(file string) (lock string, isRecord bool) {
	name, isRecord := strings.CutSuffix(file, ".owner")
	name, _, _ = strings.Cut(name, ".seat-")
	return name, isRecord
}
