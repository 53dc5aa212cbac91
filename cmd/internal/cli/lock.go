package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/lockfile"
	"vmctl/providers/job"
	"vmctl/state"
)

func (a *app) lockCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "List and release locks",
		Args:  cobra.ArbitraryArgs,
		RunE:  a.group,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "List every lock of the data directory, with its holder",
			Long: "List the run lock and all other locks of the data directory. Whether a lock is held\n" +
				"is what the kernel says; the age and the content of its file do not matter.",
			Args: between(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error { return a.lockList(cmd.Context()) },
		},
		&cobra.Command{
			Use:   "release NAME|PATH",
			Short: "Remove the record that a dead holder left beside a lock",
			Long: "A lock is free as soon as its holder has ended. The file in which the holder said\n" +
				"who it is may stay behind. This command removes it if the kernel says that nobody\n" +
				"holds the lock. A lock that is held is not released.",
			Args: one("the name of a lock, as lock list shows it"),
			RunE: func(cmd *cobra.Command, args []string) error { return a.lockRelease(cmd.Context(), args[0]) },
		},
	)
	return cmd
}

// runLock is the name of the run lock, in the data directory.
const runLock = "lock"

// busyLocks is the folder, in the data directory, of the locks of VMs in use.
const busyLocks = "busy"

// locksOf lists the locks of a data directory by path, the run lock first.
func locksOf(p *project) ([]string, error) {
	found, err := lockfile.Find(p.dir, job.Store{Dir: filepath.Join(p.dir, jobRecords)}.IsPrivate, filepath.Join(p.dir, busyLocks))
	if err != nil {
		return nil, err
	}
	run := filepath.Join(p.dir, runLock)
	found = slices.DeleteFunc(found, func(path string) bool { return path == run })
	return append([]string{run}, found...), nil
}

// lockName returns the name of a lock: its path in the data directory.
func lockName(p *project, path string) string {
	name, err := filepath.Rel(p.dir, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(name)
}

func (a *app) lockList(ctx context.Context) error {
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	paths, err := locksOf(p)
	if err != nil {
		return err
	}
	doc := view.LocksDocument{FormatVersion: view.FormatVersion, Dir: p.dir, Locks: []view.LockEntry{}}
	for _, path := range paths {
		seen, err := lockfile.Look(ctx, path)
		if err != nil {
			return err
		}
		doc.Locks = append(doc.Locks, lockEntry(p, seen))
	}
	a.show(doc, func(s view.Screen) { view.Locks(s, doc, a.commandLine("lock release", planFlags{})) })
	return nil
}

func lockEntry(p *project, s lockfile.State) view.LockEntry {
	e := view.LockEntry{Name: lockName(p, s.Path), Path: s.Path, State: "free", Holders: holders(s.Holders), Left: holders(s.Left)}
	if s.Held {
		e.State = "held"
	} else if s.Shared {
		e.State = "shared"
	}
	return e
}

func holders(owners []lockfile.Owner) []state.Holder {
	all := []state.Holder{}
	for _, o := range owners {
		all = append(all, state.Holder(o))
	}
	return all
}

func (a *app) lockRelease(ctx context.Context, name string) error {
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	path, err := a.findLock(p, name)
	if err != nil {
		return err
	}
	left, err := lockfile.Clear(ctx, path)
	var held *lockfile.HeldError
	if errors.As(err, &held) {
		return a.lockHeld(p, path, held)
	}
	if err != nil {
		return err
	}
	for _, o := range left {
		a.log().Info("record of a dead holder removed", slog.String("lock", path), slog.Int("pid", o.PID),
			slog.String("host", o.Host), slog.String("command", o.Command), slog.Time("since", o.Since))
	}
	doc := view.LockReleaseDocument{FormatVersion: view.FormatVersion, Name: lockName(p, path), Path: path, Removed: holders(left)}
	a.show(doc, func(s view.Screen) { view.LockRelease(s, doc) })
	return nil
}

func (a *app) findLock(p *project, name string) (string, error) {
	paths, err := locksOf(p)
	if err != nil {
		return "", err
	}
	var names []string
	for _, path := range paths {
		_, fileErr := os.Lstat(path)
		_, recordErr := os.Lstat(path + ".owner")
		if fileErr != nil && recordErr != nil { // the run lock, before the first apply
			continue
		}
		if name == lockName(p, path) || a.absolute(name) == path {
			return path, nil
		}
		names = append(names, lockName(p, path))
	}
	next := "there is none yet"
	if len(names) > 0 {
		next = "the locks are " + strings.Join(names, ", ")
	}
	return "", rejected("unknown_lock", "release lock "+quoted(name)+": "+p.dir+" has no lock of that name", next)
}

// lockHeld returns the error for releasing a lock that somebody holds.
func (a *app) lockHeld(p *project, path string, held *lockfile.HeldError) error {
	class, code := classRefused, "lock_held"
	if lockName(p, path) == runLock {
		class, code = classLocked, "locked"
	}
	all := held.Sharers
	if len(all) == 0 {
		all = []lockfile.Owner{held.Owner}
	}
	e := newProblem(class, code, "release lock "+quoted(lockName(p, path))+": it was not released: its holder lives")
	host, _ := os.Hostname() //nolint:errcheck // then nobody is of this host
	for _, o := range all {
		e.Seen = append(e.Seen, view.LockHolder(state.Holder(o)))
		if o.PID > 0 && o.Host == host {
			e.Next = append(e.Next, "wait for it to end, or ask it to end safely: kill "+strconv.Itoa(o.PID))
		}
	}
	if len(e.Next) == 0 {
		e.Next = []string{"wait for it to end"}
	}
	return e
}
