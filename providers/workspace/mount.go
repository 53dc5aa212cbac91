package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/parallel"
	"vmctl/internal/procenv"
	"vmctl/internal/sshfs"
	"vmctl/providers"
)

// The operations on the mount of a workspace on this host.
const (
	opMount   = "mount"
	opRemount = "remount"
	opUnmount = "unmount"
)

// wantedMount is the mount that the block of a workspace wants.
type wantedMount struct {
	Path     string // on this host, absolute, without symbolic links in its parent
	Options  []string
	Required bool
}

// mounted is the mount of a workspace as it was found.
type mounted struct {
	sshfs.Mount
	Stale string // why it does not answer; "": it does
}

// mountedAt returns the folder of this host at which a workspace is mounted, or was when vmctl last looked after it; "": none.
func (w *seen) mountedAt() string {
	switch {
	case w.Mount != nil:
		return w.Mount.Path
	case w.Note != nil:
		return w.Note.Path
	default:
		return ""
	}
}

// mountBlock returns the mount block of a policy; cty.NilVal: there is none.
func mountBlock(policy cty.Value) cty.Value {
	block := ctyread.Attr(policy, "mount")
	if !ctyread.Known(block) || ctyread.Text(block, "mount_path") == "" {
		return cty.NilVal
	}
	return block
}

// wantedMount reads the mount block of a policy. nil: it has none, or the workspace is on this host.
func (p *Provider) wantedMount(policy cty.Value) (*wantedMount, error) {
	block := mountBlock(policy)
	if block == cty.NilVal || p.onHost() {
		return nil, nil
	}
	path, err := p.folder(ctyread.Text(block, "mount_path"))
	if err != nil {
		return nil, err
	}
	want := &wantedMount{Path: realPath(path), Required: ctyread.True(block, "required"), Options: []string{}}
	for _, o := range ctyread.List(ctyread.Attr(block, "options")) {
		want.Options = append(want.Options, o.AsString())
	}
	return want, nil
}

// realPath returns a path without symbolic links in its parent, as far as that exists. It does not look at the path itself:
// something that does not answer may be mounted there.
func realPath(path string) string {
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	if real, err := filepath.EvalSymlinks(parent); err == nil {
		return filepath.Join(real, filepath.Base(path))
	}
	return filepath.Join(realPath(parent), filepath.Base(path))
}

// mountClaim returns the claim on the folder of this host at which a workspace is mounted.
func mountClaim(path string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimMount, Key: path}
}

// server returns the name of a workspace in the list of mounts of this host.
func server(id providers.ID) string { return "vmctl-" + string(id) }

// findMounts adds the mounts of workspaces in VMs on this host, and what this host noted about them.
func (p *Provider) findMounts(ctx context.Context, all []*seen) error {
	if p.onHost() {
		return nil
	}
	mounts, err := sshfs.List()
	if err != nil {
		return err
	}
	for _, w := range all {
		if w.Note, err = p.readNote(w.ID); err != nil {
			return err
		}
		i := slices.IndexFunc(mounts, func(m sshfs.Mount) bool { return strings.HasPrefix(m.Source, server(w.ID)+":") })
		if i >= 0 {
			w.Mount = &mounted{Mount: mounts[i]}
		}
	}
	h := p.mountHost()
	parallel.Do(len(all), len(all), func(i int) {
		if w := all[i]; w.Mount != nil {
			if err := h.Answers(ctx, w.Mount.Path); err != nil {
				w.Mount.Stale = err.Error()
			}
		}
	})
	return ctx.Err()
}

func (p *Provider) mountHost() sshfs.Host {
	return sshfs.Host{Env: procenv.WithoutVariables(p.host.Environ)}
}

// mountDue returns what an apply does about the mount of a workspace; nil: it is as the block wants it.
func (p *Provider) mountDue(w *seen, policy cty.Value) *providers.Due {
	want, err := p.wantedMount(policy)
	if err != nil {
		return &providers.Due{Op: opMount, Reason: "its mount cannot be judged: " + err.Error()}
	}
	switch {
	case want == nil && (w.Mount != nil || w.Note != nil):
		return &providers.Due{Op: opUnmount, Reason: "its block has no mount any more"}
	case want == nil:
		return nil
	case w.Mount == nil:
		return &providers.Due{Op: opMount, Reason: fmt.Sprintf("its folder is not mounted at %s", want.Path), Access: p.mountable(want.Path)}
	}
	if why := w.remount(*want); why != "" {
		return &providers.Due{Op: opRemount, Reason: why, Access: true}
	}
	return nil
}

// mountable reports whether this host can mount a workspace at a path now. Where it cannot, who enters a workspace is not kept
// waiting for the mount.
func (p *Provider) mountable(path string) bool {
	if sshfs.Supported() != nil || len(p.mountHost().Missing()) > 0 {
		return false
	}
	_, err := missingFolders(path)
	return err == nil
}

// remount returns the reason why a mount is to be made anew; "": it is as wanted.
func (w *seen) remount(want wantedMount) string {
	switch {
	case w.Mount.Path != want.Path:
		return fmt.Sprintf("it is mounted at %s, and wanted at %s", w.Mount.Path, want.Path)
	case w.Mount.Stale != "":
		return fmt.Sprintf("its mount at %s does not answer: %s", w.Mount.Path, w.Mount.Stale)
	case w.Mount.Source != server(w.ID)+":"+w.Path:
		return "another folder is mounted: " + w.Mount.Source
	case w.Note == nil:
		return "it is not known with which options it is mounted"
	}
	return optionsChanged(w.Note.Options, want.Options)
}

// optionsChanged returns, in words, how the options of a mount differ from the wanted ones; "": they do not. Their order does
// not count.
func optionsChanged(now, want []string) string {
	var words []string
	for _, o := range slices.Sorted(slices.Values(want)) {
		if !slices.Contains(now, o) {
			words = append(words, "+"+o)
		}
	}
	for _, o := range slices.Sorted(slices.Values(now)) {
		if !slices.Contains(want, o) {
			words = append(words, "-"+o)
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "the options of its mount changed: " + strings.Join(words, " ")
}
