package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vmctl/internal/gitx"
)

const (
	lookLimit   = time.Minute     // for the look at a folder under git after the run
	lookFirst   = 8 * time.Second // for the one before, which who started the job waits for: see handshakeWait
	mostChanged = 1000            // paths that a record holds
)

// errNoRepository says that a folder is not under git: nobody can say what changed in it.
var errNoRepository = errors.New("it is not under git")

// tree is a folder under git as it was at a look: its commit, and what differs from that.
type tree struct {
	head string            // "": none yet
	dirt map[string]string // by path under the top: its state for git, and that of its file
}

// fileStates returns, for each of the paths under a folder, what a write to the file changes.
type fileStates func(ctx context.Context, top string, paths []string) ([]string, error)

// statesHere is fileStates of this host.
func statesHere(_ context.Context, top string, paths []string) (states []string, err error) {
	for _, path := range paths {
		states = append(states, fileState(filepath.Join(top, filepath.FromSlash(path))))
	}
	return states, nil
}

// tree returns how the folder is now. errNoRepository: it is not under git.
func (v watched) tree(ctx context.Context) (tree, error) {
	git := v.git
	top, err := git.Output(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		if gitx.Status(err) == 128 && strings.Contains(err.Error(), "not a git repository") {
			err = errNoRepository
		}
		return tree{}, err
	}
	t := tree{dirt: map[string]string{}}
	if t.head, err = git.Output(ctx, "rev-parse", "--verify", "-q", "HEAD^{commit}"); err != nil && gitx.Status(err) != 1 {
		return tree{}, err
	}
	out, err := git.Filter(ctx, nil, "status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=all")
	if err != nil {
		return tree{}, err
	}
	var paths []string
	for entry := range bytes.SplitSeq(out, []byte{0}) {
		if state, path := statusEntry(string(entry)); path != "" {
			paths = append(paths, path)
			t.dirt[path] = state
		}
	}
	states, err := v.states(ctx, top, paths)
	if err != nil {
		return tree{}, err
	}
	for i, path := range paths {
		t.dirt[path] += " " + states[i]
	}
	return t, nil
}

// statusEntry returns the state and the path of an entry of git status --porcelain=v2 -z --no-renames
// (git-status, Porcelain Format Version 2).
func statusEntry(entry string) (state, path string) {
	fields := map[byte]int{'1': 9, 'u': 11, '?': 2}[(entry + " ")[0]]
	parts := strings.SplitN(entry, " ", max(fields, 1))
	if fields == 0 || len(parts) < fields {
		return "", ""
	}
	return strings.Join(parts[:fields-1], " "), parts[fields-1]
}

// fileState returns what a write to a file changes.
func fileState(path string) string {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "gone"
	case err != nil:
		return err.Error()
	}
	return fmt.Sprintf("%s %d %d", info.Mode(), info.Size(), info.ModTime().UnixNano())
}

// since returns the paths under the top of a folder that differ from an earlier look: committed meanwhile or not.
func (t tree) since(ctx context.Context, git gitx.Git, before tree) ([]string, error) {
	all := map[string]bool{}
	for path, state := range t.dirt {
		all[path] = all[path] || before.dirt[path] != state
	}
	for path := range before.dirt {
		if _, ok := t.dirt[path]; !ok {
			all[path] = true
		}
	}
	if t.head != before.head && before.head != "" && t.head != "" {
		out, err := git.Filter(ctx, nil, "diff-tree", "-r", "-z", "--no-renames", "--name-only", before.head, t.head)
		if err != nil {
			return nil, err
		}
		for path := range strings.SplitSeq(string(out), "\x00") {
			all[path] = all[path] || path != ""
		}
	}
	maps.DeleteFunc(all, func(_ string, changed bool) bool { return !changed })
	return slices.Sorted(maps.Keys(all)), nil
}

// watched is a folder that a job runs in, as it was before.
type watched struct {
	git    gitx.Git
	states fileStates
	before tree
	err    error // of the look before
}

func (w *Worker) lookBefore(ctx context.Context, dir string) watched {
	if w.Store.Git == nil {
		return watched{err: errNoRepository}
	}
	return watchedFrom(ctx, watched{git: gitx.Git{Runner: w.Store.Git, Dir: dir}, states: statesHere})
}

// lookBefore is Worker.lookBefore of a folder inside the guest.
func (w *GuestWorker) lookBefore(ctx context.Context, dir string) watched {
	return watchedFrom(ctx, watched{git: gitx.Git{Runner: guestGit{guest: w.Guest}, Dir: dir}, states: w.states})
}

// watchedFrom returns a folder with how it is now.
func watchedFrom(ctx context.Context, v watched) watched {
	ctx, cancel := context.WithTimeout(ctx, lookFirst)
	defer cancel()
	v.before, v.err = v.tree(ctx)
	return v
}

// states implements fileStates inside the guest.
func (w *GuestWorker) states(ctx context.Context, top string, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	out, err := w.call(ctx, guestCall{program: guestStates, args: []string{top}, stdin: strings.NewReader(strings.Join(paths, "\x00") + "\x00")})
	if err != nil {
		return nil, fmt.Errorf("look at the files of %s: %w", top, err)
	}
	states := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(states) != len(paths) {
		return nil, fmt.Errorf("look at the files of %s: of %d files there are %d answers", top, len(paths), len(states))
	}
	return states, nil
}

// intoCopied is into for a job that ran in a copy of the folder: it should have changed nothing here.
func (v watched) intoCopied(ctx context.Context, o *Outcome) {
	v.into(ctx, o)
	if len(o.Changed) > 0 {
		o.Warnings = append(o.Warnings, fmt.Sprintf("%d files of its workspace itself changed while it ran in a copy", len(o.Changed)))
	}
}

// into adds to an outcome what has changed since. What cannot be told is a warning.
func (v watched) into(ctx context.Context, o *Outcome) {
	if errors.Is(v.err, errNoRepository) {
		return
	}
	err := v.err
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		var now tree
		if now, err = v.tree(ctx); err == nil {
			o.Changed, err = now.since(ctx, v.git, v.before)
		}
	}
	switch {
	case err != nil:
		o.Changed = nil
		o.Warnings = append(o.Warnings, "what it changed in its folder is not known: "+err.Error())
	case len(o.Changed) == 0:
		o.Changed = []string{}
	case len(o.Changed) > mostChanged:
		o.Warnings = append(o.Warnings, fmt.Sprintf("it changed %d files, of which the record names %d", len(o.Changed), mostChanged))
		o.Changed = o.Changed[:mostChanged]
	}
}
