// Package busy is the one home of the rule that nobody's work inside a VM is cut
// off unasked (DESIGN.md, rule 8).
//
// Whoever works in a VM (vm exec, vm shell) stays inside for as long as it does:
// it shares the lock <data directory>/busy/<address>, with a record that says who
// it is. Whoever takes a VM down closes it: first its door, the lock
// <address>.door, so that nobody new comes in; then, unless it was allowed to
// interrupt them, it waits until those inside have left and takes the shared lock
// alone. Both are kernel locks: a process that ends, however it ends, is inside no
// more and keeps no door closed.
//
// The rule is applied in three places, none of which knows these files:
//
//   - cli observes who is inside (Inside writes nothing) and hands it to the
//     planner as data.
//   - planner blocks a change that takes a busy VM down, unless its policy waits
//     (when_busy) or the user allowed it (--allow-interrupt), and names everybody.
//   - executor closes the VM right before the first step that takes it down, after
//     any wait and before the step is written down as begun, and opens it when the
//     change has ended. What became busy since the plan was made is seen there.
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
	"regexp"
	"slices"
	"strings"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/spec"
	"vmctl/state"
)

// Folder is the folder busy of a data directory. It is made on first use.
type Folder struct{ Dir string }

// ClosedError says that a VM is being taken down: nobody comes in.
type ClosedError struct {
	Address spec.Address
	By      state.Holder // zero: its record cannot be read
}

// Error names who takes it down.
func (e *ClosedError) Error() string {
	if e.By == (state.Holder{}) {
		return fmt.Sprintf("%s is being taken down by another process", e.Address)
	}
	return fmt.Sprintf("%s is being taken down by %s", e.Address, e.By)
}

// OccupiedError says that somebody is inside a VM and did not leave in time.
type OccupiedError struct {
	Address spec.Address
	Holders []state.Holder
	Waited  time.Duration // 0: they were not waited for
}

// Error names the first who is inside.
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

// Enter goes inside a VM until leave is called or the process ends. It fails with
// a *ClosedError while somebody takes the VM down.
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

// checkOpen fails with a *ClosedError if the door is closed.
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

// Inside lists who is inside each of the VMs; those with nobody inside are left
// out. It writes nothing and disturbs nobody.
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

// plainName fits an address that is a good file name, on a file system that does
// not tell large letters from small ones too. It has one dot: no address is
// another's .door or .seat-N file.
var plainName = regexp.MustCompile(`^[a-z_]+\.[a-z0-9_-]{1,48}$`)

// fileName is the name of an address's lock: the address itself where that is
// short and plain, else its digest. No two addresses have the same.
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

// Tidy removes the records of those who ended inside a VM, or while they kept one
// closed, without taking them along. They hold nothing any more: the records are
// only in the way of who looks. It disturbs nobody who lives.
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

// lockOf is the lock that a record belongs to, that of one seat of it too. No name
// of a lock here has such a part itself.
func lockOf(file string) (lock string, isRecord bool) {
	name, isRecord := strings.CutSuffix(file, ".owner")
	name, _, _ = strings.Cut(name, ".seat-")
	return name, isRecord
}
