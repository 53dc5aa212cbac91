package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"vmctl/internal/atomicfile"
	"vmctl/internal/lockfile"
	"vmctl/internal/pattern"
	"vmctl/internal/process"
	"vmctl/internal/shellword"
)

// keptEdits holds the changes that a job made in its copy, as the file edits beside its record does. Once that is there, the file
// patch is too, and nothing is lost with the copy.
type keptEdits struct {
	Edits      []Edit   `json:"edits"`       // all of them, sorted by path
	Ignored    int      `json:"ignored"`     // files that it made and git ignores: they are neither here nor in the patch
	PatchBytes int64    `json:"patch_bytes"` // the size of the file patch; 0: nothing changed, and there is none
	Warnings   []string `json:"warnings"`
}

// LeftCopy is the copy of a job that has ended, if it is still there.
type LeftCopy struct {
	Path    string   `json:"path"`
	Inside  string   `json:"inside"` // the address of the VM that it is in, in which ~ is the home of its user; "": it is on this host
	Reason  string   `json:"reason"`
	Mounted []string `json:"mounted"` // where something is mounted in it, sorted: what removes the copy would remove the files there
}

// String says where the copy is and why, and what removes it.
func (l LeftCopy) String() string {
	where, removes := l.Path, shellword.Join([]string{"rm", "-rf", l.Path})
	if l.Inside != "" {
		where += " in " + l.Inside
		removes = shellword.Join([]string{"vmctl", "vm", "exec", l.Inside, "--", "sh", "-c", "rm -rf " + l.Path})
	}
	text := fmt.Sprintf("its copy stays in %s: %s; the next apply tries again", where, l.Reason)
	if len(l.Mounted) == 0 {
		text += ", and " + removes + " gives it up"
	}
	return text
}

// LeftCopyError reports the copy of a job that has ended, which is still there after another try.
type LeftCopyError struct {
	ID   ID
	Left LeftCopy
}

// Error names the job, and what removes the copy.
func (e *LeftCopyError) Error() string { return fmt.Sprintf("job %s: %s", e.ID, e.Left) }

// copyEnd is the end of a copy, for the record of its job.
type copyEnd struct {
	kept   *keptEdits // nil: no command ran in a copy, or failed says why nothing is kept
	err    error      // of keeping the edits
	stays  error      // of the removal of a copy in a VM
	warned string     // why nobody can keep the edits of a copy in a VM; "": somebody can
}

// later returns why another try has to come before the record is written: the try was interrupted, or somebody else is at it. nil:
// none has.
func (e copyEnd) later(ctx context.Context) error {
	var held *lockfile.HeldError
	if err := ctx.Err(); err != nil {
		return err
	}
	if errors.As(e.err, &held) {
		return e.err
	}
	return nil
}

// into writes to a record what became of the copy. What it says already stays if nobody can tell better.
func (e copyEnd) into(r *Record) {
	switch {
	case e.err != nil:
		r.LeftCopy = &LeftCopy{Reason: "what it changed there is kept nowhere else: " + e.err.Error(), Mounted: mountsIn(e.err)}
	case e.stays != nil:
		r.LeftCopy = &LeftCopy{Reason: "it cannot be removed: " + e.stays.Error(), Mounted: mountsIn(e.stays)}
	}
	if e.warned != "" && !slices.Contains(r.Warnings, e.warned) {
		r.Warnings = append(r.Warnings, e.warned)
	}
	if e.kept == nil || r.Edits != nil {
		return
	}
	r.Edits, r.EditCounts = []Edit{}, map[EditKind]int{}
	for _, edit := range e.kept.Edits {
		r.EditCounts[edit.Kind]++
	}
	r.Edits = append(r.Edits, e.kept.Edits[:min(len(e.kept.Edits), mostChanged)]...)
	r.Patch, r.PatchBytes, r.Ignored = e.kept.PatchBytes > 0, e.kept.PatchBytes, e.kept.Ignored
	r.Warnings = append(r.Warnings, e.kept.Warnings...)
}

// endCopy keeps what a job changed in its copy, and then removes what was private to its run. Nothing of the job lives.
func (s Store) endCopy(ctx context.Context, r Record) copyEnd {
	kept, err := s.keepEdits(ctx, r)
	_, _ = s.dropPrivate(r) // the write of the record tries again, and tells
	return copyEnd{kept: kept, err: err}
}

// keepEdits keeps what a job changed in its copy beside its record, once, and returns it; nil: no command ran in a copy, or it
// is gone. Nothing of the job lives.
func (s Store) keepEdits(ctx context.Context, r Record) (kept *keptEdits, err error) {
	if kept, err = s.readEdits(r.ID); kept != nil || err != nil {
		return kept, err
	}
	if isGone(s.Path(r.ID, copyFolder)) || !s.mayHaveRun(r) {
		return nil, nil //nolint:nilnil // there is nothing to keep
	}
	if r.Inside != "" {
		return nil, errInVM
	}
	c := s.copyOf(r.ID)
	return s.keepOnce(ctx, r.ID, func(ctx context.Context) (*keptEdits, error) { return s.summarise(ctx, r.ID, c, c.settle) })
}

// errInVM says that a copy is not on this host: only a worker reaches it.
var errInVM = errors.New("it is in the VM")

// keepOnce keeps the changes of a job beside its record as summarise does, unless another process has.
func (s Store) keepOnce(ctx context.Context, id ID, summarise func(context.Context) (*keptEdits, error)) (kept *keptEdits, err error) {
	lock, err := lockfile.Acquire(ctx, lockfile.Request{Path: s.Path(id, copyLock), Owner: s.Owner, Wait: lockWait})
	if err != nil {
		return nil, err
	}
	if kept, err = s.readEdits(id); kept == nil && err == nil {
		kept, err = summarise(ctx)
	}
	return kept, errors.Join(err, absent(lock.Release()))
}

// summarise keeps what a job changed in its copy: first the patch, and then the list. settle makes the copy ready for git, and returns
// the folders in it that were repositories of their own.
func (s Store) summarise(ctx context.Context, id ID, c *workCopy, settle func(context.Context) ([]string, error)) (*keptEdits, error) {
	var err error
	if c.base, err = s.copyBase(id); err != nil {
		return nil, err
	}
	if c.git == nil {
		return nil, errors.New("git is not there to compare it")
	}
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	repositories, err := settle(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := c.edits(ctx, repositories)
	if err == nil && len(kept.Edits) > 0 {
		kept.PatchBytes, err = c.keepPatch(ctx, s.PatchPath(id))
	}
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return nil, err
	}
	return kept, atomicfile.Write(s.Path(id, editsFile), append(data, '\n'), 0o600)
}

// keepPatch writes the patch of a copy that has been compared, and returns its size.
func (c *workCopy) keepPatch(ctx context.Context, path string) (int64, error) {
	err := atomicfile.WriteFrom(path, 0o600, func(to io.Writer) error {
		return c.diff(ctx, to, "--patch", "--binary", "--no-ext-diff", "--no-textconv", "--no-color")
	})
	if err != nil {
		return 0, fmt.Errorf("keep the patch: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("keep the patch: %w", err)
	}
	return info.Size(), nil
}

// readEdits returns what is kept of a copy; nil: nothing is.
func (s Store) readEdits(id ID) (*keptEdits, error) {
	data, err := atomicfile.Read(s.Path(id, editsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil //nolint:nilnil // nothing is kept
	case err != nil:
		return nil, err
	}
	kept := &keptEdits{}
	if err := json.Unmarshal(data, kept); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Path(id, editsFile), err)
	}
	return kept, nil
}

// markBase notes that the copy of a job is whole, and the tree of git that it began as: a command may run in it from then on.
func (s Store) markBase(id ID, base string) error {
	if err := os.MkdirAll(s.Path(id, baseFolder), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(s.Path(id, filepath.Join(baseFolder, baseMark)), []byte(base+"\n"), 0o600)
}

var treeOfGit = pattern.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// copyBase returns the tree of git that a copy began as.
func (s Store) copyBase(id ID) (string, error) {
	data, err := atomicfile.Read(s.Path(id, filepath.Join(baseFolder, baseMark)))
	if err != nil {
		return "", fmt.Errorf("how it was at the beginning is not known: %w", err)
	}
	base := strings.TrimSpace(string(data))
	if !treeOfGit.MatchString(base) {
		return "", fmt.Errorf("how it was at the beginning is not known: %q is no tree of git", base)
	}
	return base, nil
}

// mayHaveRun reports whether the command of a job may have run in its copy.
func (s Store) mayHaveRun(r Record) bool {
	return !r.Started.IsZero() || !isGone(s.Path(r.ID, filepath.Join(baseFolder, baseMark)))
}

// isGone reports whether it is sure that nothing is at a path.
func isGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// dropPrivate removes what is private to the run of a job: its copy, unless that alone has what the job changed, with what is remembered
// of it, and its TMPDIR. left is a copy that stays, the warnings name what else does.
func (s Store) dropPrivate(r Record) (left *LeftCopy, warnings []string) {
	warnings = notRemoved(s.Path(r.ID, tempFolder))
	path, base := s.Path(r.ID, copyFolder), s.Path(r.ID, baseFolder)
	if isGone(path) {
		return nil, append(warnings, notRemoved(base)...)
	}
	if r.Inside != "" {
		return s.leftInside(r), warnings
	}
	if isGone(s.Path(r.ID, editsFile)) && s.mayHaveRun(r) {
		left = &LeftCopy{Path: path, Reason: "what it changed there is kept nowhere else"}
		if r.LeftCopy != nil {
			left.Reason = cmp.Or(r.LeftCopy.Reason, left.Reason)
		}
		left.Mounted = append([]string{}, mountsIn(unmounted(path))...)
		return left, warnings
	}
	if err := removeTree(path); err != nil {
		return &LeftCopy{Path: path, Reason: "it cannot be removed: " + err.Error(), Mounted: append([]string{}, mountsIn(err)...)}, warnings
	}
	return nil, append(warnings, notRemoved(base)...)
}

// leftInside returns the copy of a job in a VM, which is still there: only a worker reaches it.
func (s Store) leftInside(r Record) *LeftCopy {
	left := &LeftCopy{Path: filepath.ToSlash(Store{Dir: "~/" + guestCopies}.Path(r.ID, "")), Inside: r.Inside, Reason: "it is not removed yet", Mounted: []string{}}
	if isGone(s.Path(r.ID, editsFile)) && s.mayHaveRun(r) {
		left.Reason = "what it changed there is kept nowhere else"
	}
	if r.LeftCopy != nil {
		left.Reason, left.Mounted = cmp.Or(r.LeftCopy.Reason, left.Reason), append(left.Mounted, r.LeftCopy.Mounted...)
	}
	return left
}

// notRemoved removes a folder, and returns a warning if it stays.
func notRemoved(dir string) []string {
	if err := removeTree(dir); err != nil {
		return []string{fmt.Sprintf("%s stays: %v", dir, err)}
	}
	return nil
}

// IsPrivate reports whether a path is that of a copy, of what is remembered of one, or of a TMPDIR of a job: vmctl has no lock there.
func (s Store) IsPrivate(path string) bool {
	name := filepath.Base(path)
	return filepath.Dir(filepath.Dir(path)) == filepath.Clean(s.Dir) && (name == copyFolder || name == baseFolder || name == tempFolder)
}

// clean tries again what the end of a job left undone: to keep what it changed in its copy, and to remove what was private to
// its run. It waits for another time while processes of the job live. The error is a *LeftCopyError if the copy is still there.
func (s Store) clean(ctx context.Context, r Record, o Observer) (Record, error) {
	path := s.Path(r.ID, copyFolder)
	folders := []string{path, s.Path(r.ID, baseFolder), s.Path(r.ID, tempFolder)}
	switch {
	case r.LeftCopy == nil && !slices.ContainsFunc(folders, func(dir string) bool { return !isGone(dir) }):
		return r, nil
	case r.Inside != "" && r.LeftCopy != nil: // its worker has tried
		return r, &LeftCopyError{ID: r.ID, Left: *r.LeftCopy}
	case r.Inside != "":
		return r, nil
	}
	if left, err := o.Processes.WithVariable(ctx, r.marker()); len(left) > 0 && !isGone(path) {
		return r, &LeftCopyError{ID: r.ID, Left: LeftCopy{
			Path: path, Reason: "processes of the job live: " + process.Words(left), Mounted: mountsIn(unmounted(path)),
		}}
	} else if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return r, fmt.Errorf("job %s: remove its copy: see whether processes of it live: %w", r.ID, err)
	}
	end := s.endCopy(ctx, r)
	if err := end.later(ctx); err != nil {
		return r, err
	}
	after := r
	end.into(&after)
	after.LeftCopy, _ = s.dropPrivate(after)
	if !reflect.DeepEqual(after, r) {
		var err error
		after, err = s.Update(ctx, r.ID, func(r *Record) error {
			end.into(r)
			return nil
		})
		if err != nil {
			return after, err
		}
	}
	if after.LeftCopy != nil {
		return after, &LeftCopyError{ID: r.ID, Left: *after.LeftCopy}
	}
	for _, dir := range folders[1:] {
		if err := removeTree(dir); err != nil {
			return after, fmt.Errorf("job %s: %s stays: %w", r.ID, dir, err)
		}
	}
	return after, nil
}

// concernsCopy reports whether a change of a record that has ended is one about its copy alone.
func concernsCopy(before, after Record) bool {
	after.Edits, after.EditCounts, after.Patch, after.PatchBytes = before.Edits, before.EditCounts, before.Patch, before.PatchBytes
	after.LeftCopy, after.Warnings, after.Ignored = before.LeftCopy, before.Warnings, before.Ignored
	return reflect.DeepEqual(before, after)
}
