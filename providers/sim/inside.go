package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"vmctl/internal/mountinfo"
	"vmctl/internal/shellword"
	"vmctl/providers"
)

// removeInside removes the inside of a VM: its home, and the folders of this host that are checkouts of git directories in it. On a real
// disk these would go with it. It removes nothing if something is mounted there: those files are not the VM's.
func (p *Provider) removeInside(id providers.ID) error {
	home := p.homePath(id)
	checkouts, err := checkoutsOf(home)
	if err != nil {
		return err
	}
	all := append(checkouts, home)
	for _, dir := range all {
		mounts, err := mountinfo.Below(dir)
		if err != nil {
			return err
		}
		if len(mounts) > 0 {
			return fmt.Errorf("something is mounted inside of the VM; unmount it first: umount %s", shellword.Join(mounts))
		}
	}
	for _, dir := range all {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// checkoutsOf returns the folders in which the workspaces of a home are checked out: the second line of a record names one, and its
// file .git leads back into the home.
func checkoutsOf(home string) ([]string, error) {
	records, err := filepath.Glob(filepath.Join(home, ".vmctl", "workspaces", "*", "mark"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, record := range records {
		text, err := os.ReadFile(record)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(text), "\n")
		if len(lines) < 2 || !filepath.IsAbs(lines[1]) {
			continue
		}
		back, err := os.ReadFile(filepath.Join(lines[1], ".git"))
		if err == nil && isSame(strings.TrimPrefix(strings.TrimSpace(string(back)), "gitdir: "), filepath.Join(filepath.Dir(record), "git")) {
			all = append(all, lines[1])
		}
	}
	return all, nil
}

// isSame reports whether two paths lead to the same folder.
func isSame(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}
