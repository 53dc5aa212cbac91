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
	named := strings.Join(paths, ", ")
	slices.Reverse(paths) // those on others end first
	unmount := append([]string{"umount"}, paths...)
	next := providers.Say(shellword.Join(unmount))
	if !t.p.onHost() {
		next = providers.Vmctl(append([]string{"vm", "exec", t.p.settings.Via.Address.String(), "--"}, unmount...)...)
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "mounted", Next: next,
		Err: fmt.Errorf("%s %s: something is mounted in its folder, and its files would be removed with it: %s", t.Op, t.Address, named),
	}
}
