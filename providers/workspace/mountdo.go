package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/sshfs"
	"vmctl/providers"
	"vmctl/providers/guard"
)

// mountTimeout limits a step about a mount.
const mountTimeout = 2 * time.Minute

// mountStep adds a step about the mount of a workspace.
func (s *steps) mountStep(op string, phase providers.Phase, id providers.ID) {
	step := s.Add(op, phase, id)
	step.Timeout = mountTimeout
	if block := mountBlock(s.Change.Policy); op != opUnmount && !ctyread.True(block, "required") {
		step.Class = providers.Diagnostic
	}
	if op != opMount {
		step.Frees = s.mountHeld()
	}
	if op != opUnmount && s.mount != (providers.Claim{}) {
		step.Takes = []providers.Claim{s.mount}
	}
}

// mountDue adds the steps of what is due about the mount. A folder that another workspace takes is given up before anything is
// mounted.
func (s *steps) mountDue(op string) {
	yields := slices.ContainsFunc(s.mountHeld(), func(c providers.Claim) bool { return slices.Contains(s.Change.Yields, c) })
	if !yields || op == opMount {
		s.mountStep(op, providers.PhaseChange, s.Change.ID)
		return
	}
	s.mountStep(opUnmount, providers.PhaseFree, s.Change.ID)
	if op == opRemount {
		s.mountStep(opMount, providers.PhaseChange, s.Change.ID)
	}
}

// mountHeld returns the claim on the folder at which the workspace is mounted, if it is.
func (s *steps) mountHeld() (all []providers.Claim) {
	if s.Change.Object == nil {
		return nil
	}
	for _, c := range s.Change.Object.Holds {
		if c.Kind == providers.ClaimMount {
			all = append(all, c)
		}
	}
	return all
}

// unmounts adds the step that ends the mount of a workspace, if it has one.
func (s *steps) unmounts(phase providers.Phase) bool {
	o := s.Change.Object
	if o == nil || ctyread.Text(o.Attrs, "mount_path") == "" {
		return false
	}
	s.mountStep(opUnmount, phase, o.ID)
	return true
}

// release ends the mount before the VM goes down, and makes it again once the VM is up.
func (s *steps) release() {
	mounted := s.unmounts(providers.PhaseRelease)
	if s.Change.Ends { // what the mount held back has arrived by then
		s.check(providers.PhaseRelease)
	}
	if mounted && s.Change.Want != cty.NilVal && mountBlock(s.Change.Policy) != cty.NilVal {
		s.mountStep(opMount, providers.PhaseResume, s.Change.Object.ID)
	}
}

// mountVerb returns the part of a step about the mount.
func (t *task) mountVerb() guard.Verb {
	switch t.Op {
	case opUnmount:
		return guard.Verb{
			Done: guard.If(func() bool { return t.seen != nil && t.seen.Mount == nil && t.seen.Note == nil }, "it is not mounted"),
			Act:  func(ctx context.Context) (*guard.Outcome, error) { return t.unmount(ctx) },
		}
	default:
		return guard.Verb{Act: t.mount}
	}
}

// mount mounts the folder of the workspace as its block wants it.
func (t *task) mount(ctx context.Context) (*guard.Outcome, error) {
	want, err := t.p.wantedMount(t.Policy)
	if err != nil {
		return nil, t.unmountable(err)
	}
	if want == nil {
		return guard.Did(providers.AlreadyTrue, "its block has no mount"), nil
	}
	if t.seen.Mount != nil && t.seen.remount(*want) == "" {
		return guard.Did(providers.AlreadyTrue, "it is mounted at "+want.Path), nil
	}
	if t.seen.Mount != nil || t.seen.Note != nil {
		if _, err := t.unmount(ctx); err != nil {
			return nil, err
		}
	}
	if err := t.mountAt(ctx, *want); err != nil {
		return nil, t.unmountable(err)
	}
	return guard.Did(providers.Done, "at "+want.Path), nil
}

// unmountable returns a failure to mount with what can be done about it.
func (t *task) unmountable(err error) error {
	f := t.p.Failure(err, "mount %s", t.Address)
	f.Code = "mount"
	var missing *sshfs.MissingError
	if errors.As(err, &missing) {
		f.Code, f.Next = "missing_tool", providers.Say("install "+missing.Program+" (on Debian: apt-get install sshfs fuse3), then apply again")
	}
	return f
}

// mountAt makes a mount in an empty folder, which it makes if it is missing. If it fails, neither is left.
func (t *task) mountAt(ctx context.Context, want wantedMount) error {
	if err := sshfs.Supported(); err != nil {
		return err
	}
	if missing := t.p.mountHost().Missing(); len(missing) > 0 {
		return &sshfs.MissingError{Program: missing[0]}
	}
	made, err := missingFolders(want.Path)
	if err != nil {
		return err
	}
	around, err := t.p.madeAround(want.Path)
	if err != nil {
		return err
	}
	note := mountNote{Path: want.Path, Options: want.Options, Made: append(slices.Clip(made), around...)}
	if err := t.p.writeNote(t.Object, note); err != nil {
		return err
	}
	err = os.MkdirAll(want.Path, 0o700)
	if err == nil {
		err = t.p.mountHost().Mount(ctx, sshfs.Request{
			Name: server(t.Object), Folder: t.seen.Path, Path: want.Path, Options: want.Options,
			Transport: t.p.host.Transport(t.p.settings),
		})
	}
	if err != nil {
		_, left := removeFolders(made)
		return errors.Join(err, left, t.p.dropNote(t.Object))
	}
	return nil
}

// missingFolders returns the folders that have to be made for a mount, the innermost first. It fails if something is there that
// the mount would hide.
func missingFolders(path string) (missing []string, err error) {
	switch kind, err := sshfs.At(path); {
	case err != nil:
		return nil, err
	case kind != "":
		return nil, fmt.Errorf("something else is mounted at %s (%s)", path, kind)
	}
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			missing = append(missing, at)
			continue
		case err != nil:
			return nil, err
		case !info.IsDir():
			return nil, fmt.Errorf("%s exists and is no folder", at)
		case at != path:
			return missing, nil
		}
		inside, err := os.ReadDir(path)
		if err == nil && len(inside) > 0 {
			err = fmt.Errorf("%s is not empty: the mount would hide %s: choose another mount_path, or move it away", path, inside[0].Name())
		}
		return missing, err
	}
}

// removeFolders removes the folders that were made for a mount, as far as they are empty. It returns the first one that is not.
func removeFolders(made []string) (kept string, err error) {
	for i, folder := range made {
		err := os.Remove(folder)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		inside, unread := os.ReadDir(folder)
		switch {
		case unread != nil:
			return folder, unread
		case len(inside) == 0:
			return folder, err
		case i > 0: // others use it by now
			return "", nil
		default:
			return folder, nil
		}
	}
	return "", nil
}

// unmount ends the mount, and removes the empty folders that were made for it.
func (t *task) unmount(ctx context.Context) (*guard.Outcome, error) {
	if t.seen == nil {
		return guard.Did(providers.AlreadyTrue, "it is gone"), nil
	}
	var evidence []string
	if m := t.seen.Mount; m != nil {
		if err := t.p.mountHost().Unmount(ctx, m.Mount); err != nil {
			return nil, t.stays(err)
		}
		evidence = append(evidence, "from "+m.Path)
	}
	if n := t.seen.Note; n != nil {
		kept, err := removeFolders(n.Made)
		switch {
		case err != nil:
			evidence = append(evidence, fmt.Sprintf("%s could not be removed: %v", kept, err))
		case kept != "":
			evidence = append(evidence, kept+" is kept: it is not empty")
		}
		if err := t.p.dropNote(t.Object); err != nil {
			return nil, err
		}
	}
	t.seen.Mount, t.seen.Note = nil, nil
	return guard.Did(providers.Done, evidence...), nil
}

// stays returns the failure to end a mount. It names the processes that use it.
func (t *task) stays(err error) error {
	f := t.p.Failure(err, "%s %s", t.Op, t.Address)
	f.Code = "mount"
	var busy *sshfs.BusyError
	if errors.As(err, &busy) {
		f.Code = "mount_busy"
		for _, h := range busy.Holders {
			f.Seen = append(f.Seen, h.String())
		}
		f.Next = append(providers.Say("close what uses "+busy.Path), providers.SayVmctl("then: ", "apply")...)
	}
	return f
}
