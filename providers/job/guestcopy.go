package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"

	"vmctl/internal/gitx"
	"vmctl/internal/mountinfo"
	"vmctl/providers"
)

// The copy of a job in a VM is made there by the git of the VM: no file of the workspace comes to this host. While it is there, or may
// be, the folder of a copy beside the record on this host stands for it, and is empty.

// guestGit runs git in a guest.
type guestGit struct {
	guest providers.Guest
	env   []string // further variables
}

// Run implements gitx.Runner.
func (g guestGit) Run(ctx context.Context, c gitx.Command) (gitx.Output, error) {
	o, err := g.guest.Run(ctx, providers.Command{Args: c.Args, Dir: c.Dir, Env: g.env, Stdin: c.Stdin, Stdout: c.Stdout})
	return gitx.Output{Status: o.Status, Stderr: o.Stderr}, err
}

// copier is the variable of whatever makes, keeps or removes the copy of a job inside a guest, for a worker.
func (w *GuestWorker) copier() []string { return []string{Marker + "_COPIER=" + string(w.ID)} }

// copyGit returns the git that works on the copy of a job.
func (w *GuestWorker) copyGit() guestGit { return guestGit{w.Guest, w.copier()} }

// contain makes the copy that a job runs in if it is contained, and leads r there. nil: it may start.
func (w *GuestWorker) contain(ctx context.Context, r *Record) *guestOutcome {
	if r.Containment != InCopy {
		return nil
	}
	w.Ready(nil) // nobody waits for a copy of a large workspace: the record says who makes it
	w.Ready = func(error) {}
	ctx, done := w.Store.untilCancelled(ctx, w.ID)
	defer done()
	c, warnings, err := w.makeCopy(ctx, *r)
	if err != nil {
		return &guestOutcome{Outcome: Outcome{ErrorCode: CodeOf(err, CopyFailed), Reason: fmt.Sprintf("copy its workspace: %v", err), Requested: ctx.Err() != nil}}
	}
	if ctx.Err() != nil {
		return &guestOutcome{Outcome: Outcome{Requested: true, Reason: ErrCancelled.Error()}}
	}
	r.Dir, w.ceiling, w.left = c.work(), c.dir, warnings
	return nil
}

// makeCopy makes the copy of a job. The warnings say what was left out.
func (w *GuestWorker) makeCopy(ctx context.Context, r Record) (*workCopy, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	if err := os.MkdirAll(w.Store.Path(w.ID, copyFolder), 0o700); err != nil {
		return nil, nil, err
	}
	git := gitx.Git{Runner: w.copyGit(), Dir: r.Dir}
	top, err := git.Output(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, nil, err
	}
	at, err := git.Output(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, nil, err
	}
	git.Dir = top
	files, err := scopeFiles(ctx, git, r.Scope, r.Base)
	if err != nil {
		return nil, nil, err
	}
	dir, err := w.run(ctx, guestCall{program: guestCopyBegin, args: []string{top, r.Dir}})
	if err != nil {
		return nil, nil, err
	}
	c := &workCopy{git: w.copyGit(), dir: strings.TrimSuffix(string(dir), "\n"), at: at}
	c.own = c.dir
	var warnings []string
	left, err := w.index(ctx, c, top, files)
	if left > 0 {
		warnings = append(warnings, fmt.Sprintf("symbolic links that lead out of its workspace, or through many others, are not in its copy: %d", left))
	}
	if err == nil {
		c.base, err = c.remembering().Output(ctx, "write-tree")
	}
	if err == nil {
		_, err = c.remembering().Output(ctx, "checkout-index", "--all", "--index", "--quiet")
	}
	if err == nil { // the scope may hold none of its files
		_, err = w.run(ctx, guestCall{program: `mkdir -p "$2"`, args: []string{c.work()}})
	}
	if err == nil {
		err = w.Store.markBase(w.ID, c.base)
	}
	return c, warnings, err
}

// index writes the files of a scope to the index of a copy, and counts the symbolic links that it leaves out.
func (w *GuestWorker) index(ctx context.Context, c *workCopy, top string, files []scopeFile) (left int, err error) {
	var objects, entries, disk bytes.Buffer
	for _, f := range files {
		if f.object == "" {
			disk.WriteString(f.path + "\x00")
			continue
		}
		objects.WriteString(f.object + "\n")
		fmt.Fprintf(&entries, "%s %s 0\t%s\x00", f.mode, f.object, f.path)
	}
	if objects.Len() > 0 {
		if _, err := w.run(ctx, guestCall{program: guestCopyObjects, args: []string{top}, stdin: &objects}); err != nil {
			return 0, err
		}
		if _, err := c.remembering().Filter(ctx, entries.Bytes(), "update-index", "-z", "--index-info"); err != nil {
			return 0, err
		}
	}
	if disk.Len() > 0 {
		if _, err := w.run(ctx, guestCall{program: guestCopyDisk, args: []string{top}, stdin: &disk}); err != nil {
			return 0, err
		}
	}
	out, err := c.remembering().Filter(ctx, nil, "ls-files", "-z", "--stage")
	if err != nil {
		return 0, err
	}
	all, links, err := staged(out)
	if err != nil || len(links) == 0 {
		return 0, err
	}
	targets := map[string]string{}
	err = readObjects(ctx, c.remembering(), links, func(f scopeFile, text io.Reader) error {
		target, err := io.ReadAll(text)
		targets[f.path] = string(target)
		return err
	})
	if err != nil {
		return 0, err
	}
	outwards := leadingOut(all, targets)
	if len(outwards) == 0 {
		return 0, nil
	}
	_, err = c.remembering().Filter(ctx, []byte(strings.Join(outwards, "\x00")+"\x00"), "update-index", "-z", "--force-remove", "--stdin")
	return len(outwards), err
}

// staged reads the output of git ls-files --stage -z: the paths of all files, and those that are symbolic links.
func staged(out []byte) (all []string, links []scopeFile, err error) {
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		head, name, found := strings.Cut(entry, "\t")
		f := strings.Fields(head)
		switch {
		case entry == "":
		case !found || len(f) != 3:
			return nil, nil, fmt.Errorf("git ls-files printed %q, which is not understood", entry)
		case f[0] == modeLink:
			links = append(links, scopeFile{path: name, mode: f[0], object: f[1]})
			all = append(all, name)
		default:
			all = append(all, name)
		}
	}
	return all, links, nil
}

// settleCopy makes the copy of a job ready for git, and returns the folders in it that were repositories of their own.
func (w *GuestWorker) settleCopy(ctx context.Context) (repositories []string, err error) {
	out, err := w.run(ctx, guestCall{program: guestCopySettle})
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if name != "" {
			repositories = append(repositories, path.Clean(path.Dir(name)))
		}
	}
	slices.Sort(repositories)
	return repositories, nil
}

// whereCopy returns the folder of the copy of a job; "": it is gone. It fails with a *mountedError if something is mounted in it.
func (w *GuestWorker) whereCopy(ctx context.Context) (dir string, err error) {
	out, err := w.run(ctx, guestCall{program: guestCopyWhere})
	if err != nil {
		return "", err
	}
	dir, mounts, _ := strings.Cut(string(out), "\n")
	all, err := mountinfo.Parse(mounts)
	if inside := mountinfo.In(dir, all); err == nil && dir != "" && len(inside) > 0 {
		err = &mountedError{inside}
	}
	return dir, err
}

// endCopy keeps what a job changed in its copy beside its record, and then removes the copy. Nothing of the job lives.
func (w *GuestWorker) endCopy(ctx context.Context, r Record) (end copyEnd) {
	if r.Containment != InCopy || isGone(w.Store.Path(w.ID, copyFolder)) {
		return end
	}
	ctx, cancel := context.WithTimeout(ctx, 2*copyLimit)
	defer cancel()
	if _, err := w.inside(ctx, guestEndCopiers); err != nil { // what a worker that was killed, or a call that was cut short, left there
		end.stays = err
		return end
	}
	dir, err := w.whereCopy(ctx)
	if end.kept, end.err = w.Store.readEdits(w.ID); end.err == nil && end.kept == nil && w.Store.mayHaveRun(r) {
		c := &workCopy{git: w.copyGit(), dir: dir, own: dir}
		switch {
		case err != nil:
			end.err = err
		case dir == "":
			end.warned = lostCopy(r)
		default:
			end.kept, end.err = w.Store.keepOnce(ctx, w.ID, func(ctx context.Context) (*keptEdits, error) {
				return w.Store.summarise(ctx, w.ID, c, w.settleCopy)
			})
		}
	}
	if end.err != nil {
		return end
	}
	if err == nil && dir != "" {
		_, err = w.run(ctx, guestCall{program: guestCopyRemove})
	}
	if err == nil {
		err = w.Store.dropStandIn(w.ID)
	}
	end.stays = err
	return end
}

func lostCopy(r Record) string {
	return "its copy in " + r.Inside + " is gone, and what it changed there was not kept"
}

// dropStandIn removes what stands for the copy of a job in a VM, which is gone.
func (s Store) dropStandIn(id ID) error {
	return errors.Join(removeTree(s.Path(id, copyFolder)), removeTree(s.Path(id, baseFolder)))
}

// LoseCopy records that the copy of a job is gone with the VM that it was in. It returns a warning if what the job changed is lost.
func (s Store) LoseCopy(ctx context.Context, r Record) (warning string, err error) {
	kept, err := s.readEdits(r.ID)
	if err != nil {
		return "", err
	}
	if kept == nil && s.mayHaveRun(r) {
		warning = lostCopy(r)
	}
	if err := s.dropStandIn(r.ID); err != nil {
		return warning, err
	}
	_, err = s.Update(ctx, r.ID, func(r *Record) error {
		copyEnd{kept: kept, warned: warning}.into(r)
		return nil
	})
	return warning, err
}

// Collect tries again what the end of a job left undone in its VM: to keep what it changed in its copy, and to remove that. It waits for
// another time while processes of the job live. The error is a *LeftCopyError if the copy is still there.
func (w *GuestWorker) Collect(ctx context.Context) error {
	r, err := w.Store.Read(w.ID)
	if err != nil || !r.Status.IsTerminal() || r.LeftCopy == nil {
		return err
	}
	if _, err := w.inside(ctx, guestEndCopiers); err != nil {
		return fmt.Errorf("job %s: end what works on its copy in %s: %w", w.ID, r.Inside, err)
	}
	lives, err := w.inside(ctx, guestLives)
	if err != nil {
		return fmt.Errorf("job %s: see whether processes of it live in %s: %w", w.ID, r.Inside, err)
	}
	end := copyEnd{stays: errors.New("processes of the job live: pid " + strings.Join(strings.Fields(string(lives)), ", "))}
	if len(lives) == 0 {
		end = w.endCopy(ctx, r)
	}
	if err := end.later(ctx); err != nil {
		return err
	}
	after := r
	end.into(&after)
	after.LeftCopy, _ = w.Store.dropPrivate(after)
	if reflect.DeepEqual(after, r) {
		return nil
	}
	_, err = w.Store.Update(ctx, w.ID, func(r *Record) error {
		end.into(r)
		return nil
	})
	return err
}

// linkLimit is the number of symbolic links that a path may lead through.
const linkLimit = 255

// leadingOut returns those of the symbolic links of a tree that lead out of it, also by way of others, or through too many others.
// paths are all files of the tree, links among them.
func leadingOut(paths []string, targets map[string]string) (out []string) {
	kinds := map[string]bool{} // of each path that is there and no link: whether it is a folder
	for _, name := range paths {
		if _, isLink := targets[name]; !isLink {
			kinds[name] = false
		}
		for dir := path.Dir(name); dir != "." && !kinds[dir]; dir = path.Dir(dir) {
			kinds[dir] = true
		}
	}
	links := map[string]string{}
	for name, target := range targets {
		if staysInside(name, target) {
			links[name] = target
		}
	}
	for _, name := range paths {
		target, isLink := targets[name]
		_, mayStay := links[name]
		if isLink && (!mayStay || escapes(name, target, links, kinds)) {
			delete(links, name)
			out = append(out, name)
		}
	}
	return out
}

// escapes reports whether a symbolic link of a tree leads out of it, or through too many others. One that leads to nothing does not.
func escapes(name, target string, links map[string]string, kinds map[string]bool) bool {
	at, rest, followed := path.Dir(name), strings.Split(target, "/"), 1
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if at == "." {
				return true
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		isFolder, isThere := kinds[next]
		target, isLink := links[next]
		switch {
		case isLink && followed == linkLimit:
			return true
		case isLink:
			rest = append(strings.Split(target, "/"), rest...)
			followed++
		case !isThere, !isFolder && len(rest) > 0:
			return false
		default:
			at = next
		}
	}
	return false
}
