package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"vmctl/internal/mountinfo"
	"vmctl/internal/shellword"
	"vmctl/providers"
)

// unmounted fails if something is mounted in the folder of the workspace, before anything is removed: the files there are not the
// workspace's, and would go with it. Git does not tell of them where it ignores the folder.
func (t *task) unmounted(ctx context.Context) error {
	out, err := t.p.inside(ctx, mounts, nil, t.seen.Path)
	if err != nil {
		return err
	}
	dir, list, _ := strings.Cut(string(out), "\n")
	all, err := mountinfo.Parse(list)
	if err != nil || dir == "" {
		return err
	}
	paths := mountinfo.In(dir, all)
	if len(paths) == 0 {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "mounted", Next: t.p.unmounting(paths), Err: fmt.Errorf("%s %s: %s", t.Op, t.Address, mountedText(paths)),
	}
}

// mountedText says what is mounted in the folder of a workspace.
func mountedText(paths []string) string {
	return "something is mounted in its folder, and its files would be removed with it: " + strings.Join(paths, ", ")
}

// unmounting returns the command that ends mounts in the place.
func (p *Provider) unmounting(paths []string) []providers.Advice {
	unmount := []string{"umount"}
	for _, path := range slices.Backward(paths) { // those on others end first
		unmount = append(unmount, path)
	}
	if p.onHost() {
		return providers.Say(shellword.Join(unmount))
	}
	return providers.Vmctl(append([]string{"vm", "exec", p.settings.Via.Address.String(), "--"}, unmount...)...)
}

// noteMounted notes where something is mounted in the folders of workspaces.
func (p *Provider) noteMounted(all []*seen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.within = map[providers.ID][]string{}
	for _, w := range all {
		p.within[w.ID] = w.Within
	}
}

// holdsMounts returns why a workspace cannot be removed as it was at the last look, if something is mounted in its folder; nil: nothing
// is. The removal itself looks again.
func (p *Provider) holdsMounts(id providers.ID) *providers.Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	if paths := p.within[id]; len(paths) > 0 {
		return providers.Refuse(mountedText(paths), p.unmounting(paths))
	}
	return nil
}
