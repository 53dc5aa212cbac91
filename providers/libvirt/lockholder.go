package libvirt

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vmctl/providers"
)

// locked adds the holder of a disk to a failure to get the disk, if it can be found.
func (j *job) locked(f *providers.Problem, paths ...string) *providers.Problem {
	if !isLocked(f.Error()) && !slices.ContainsFunc(f.Seen, isLocked) {
		return f
	}
	f.Code = "disk_in_use"
	for _, path := range paths {
		if !strings.Contains(f.Error()+strings.Join(f.Seen, "\n"), path) {
			continue
		}
		holders := j.openedBy(path)
		if len(holders) > 0 {
			f.Seen = append(f.Seen, path+" is open in "+strings.Join(holders, ", "))
		}
		f.Next = append(providers.Say(
			"another QEMU has the disk: see who: fuser -v "+path,
			"end what uses it, or detach the disk there",
		), f.Next...)
	}
	return f
}

// notOpen fails if a process of this host has a file open: a deletion would take the file
// from the process.
func (j *job) notOpen(doing, path string) error {
	holders := j.openedBy(path)
	if len(holders) == 0 {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "disk_in_use",
		Seen: []string{path + " is open in " + strings.Join(holders, ", ")},
		Next: providers.Say("end what uses it: fuser -v " + path + " says who does"),
		Err:  fmt.Errorf("%s: another process has it open", doing),
	}
}

// openedBy names the processes of this host that have a file open, as far as this
// user can see them, by whatever path: `process 4711 (qemu-system-x86)`.
func (p *Provider) openedBy(path string) []string {
	if !p.location.Here {
		return nil
	}
	entries, err := os.ReadDir(p.host.Proc)
	if err != nil {
		return nil
	}
	var all []string
	files := p.sameFiles()
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		links, err := filepath.Glob(filepath.Join(p.host.Proc, e.Name(), "fd", "*"))
		if err != nil {
			continue
		}
		if slices.ContainsFunc(links, func(link string) bool {
			to, err := os.Readlink(link)
			return err == nil && (to == path || isOnDisk(to) && files.same(link, path))
		}) {
			all = append(all, fmt.Sprintf("process %s (%s)", e.Name(), p.nameOfProcess(e.Name())))
		}
	}
	return all
}

// isOnDisk reports whether the target of an open file may be a disk: it is neither a device nor a
// pipe.
func isOnDisk(to string) bool {
	device := strings.HasPrefix(to, "/dev/") && !strings.HasPrefix(to, "/dev/shm/") // which has files
	return strings.HasPrefix(to, "/") && !device
}

// nameOfProcess returns the name of a process; for a QEMU, the name of its domain.
func (p *Provider) nameOfProcess(pid string) string {
	if line, err := os.ReadFile(filepath.Join(p.host.Proc, pid, "cmdline")); err == nil {
		if _, rest, ok := strings.Cut(string(line), "\x00guest="); ok {
			name, _, _ := strings.Cut(rest, "\x00")
			name, _, _ = strings.Cut(name, ",")
			return "QEMU of " + name
		}
	}
	name, err := os.ReadFile(filepath.Join(p.host.Proc, pid, "comm"))
	if err != nil {
		return "name unknown"
	}
	return strings.TrimSpace(string(name))
}
