package lima

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/process"
)

// role names the work of a process for its instance.
type role string

const (
	roleAgent  role = "host agent"
	roleDriver role = "QEMU"
)

// found holds the processes of instances.
type found struct {
	of    map[string]map[role][]process.Found // by the instance's name
	err   error                               // there may be more
	locks map[string][]string                 // the disks that an instance has locked, by its name
}

// find finds the processes of all instances of the home.
func (p *Provider) find(ctx context.Context) found {
	f := found{of: map[string]map[role][]process.Found{}, locks: p.readLocks()}
	all, err := p.processes.Search(ctx, func(argv []string) bool {
		_, _, ours := p.roleOf(argv)
		return ours
	})
	if !errors.Is(err, fs.ErrPermission) { // other users' processes are not ours
		f.err = err
	}
	for _, one := range all {
		name, r, _ := p.roleOf(one.Argv)
		if f.of[name] == nil {
			f.of[name] = map[role][]process.Found{}
		}
		f.of[name][r] = append(f.of[name][r], one)
	}
	for _, roles := range f.of {
		for r, all := range roles {
			roles[r] = withoutForks(all)
		}
	}
	return f
}

// withoutForks leaves out the children of other processes of the same role: a host agent that starts ssh
// is two processes with the same arguments for a moment, which may be long on a busy machine.
func withoutForks(all []process.Found) []process.Found {
	return slices.DeleteFunc(slices.Clone(all), func(child process.Found) bool {
		return slices.ContainsFunc(all, func(f process.Found) bool { return f.PID == child.Parent })
	})
}

// roleOf returns the instance and the role of a process with such arguments.
func (p *Provider) roleOf(argv []string) (name string, r role, ours bool) {
	for i := 1; i+1 < len(argv); i++ {
		r, known := pidArguments[argv[i]]
		if !known || filepath.Base(argv[i+1]) != pidFiles[r] {
			continue
		}
		dir := filepath.Dir(argv[i+1])
		if p.isHome(filepath.Dir(dir)) {
			return filepath.Base(dir), r, true
		}
	}
	return "", "", false
}

// isHome reports whether a folder is the home, under whatever path.
func (p *Provider) isHome(dir string) bool {
	if dir == p.home {
		return true
	}
	resolved, err := filepath.EvalSymlinks(dir)
	return err == nil && resolved == p.resolvedHome()
}

func (p *Provider) resolvedHome() string {
	if resolved, err := filepath.EvalSymlinks(p.home); err == nil {
		return resolved
	}
	return p.home
}

// values returns the values of an option of a program, in order: those of -drive, say.
func values(argv []string, option string) []string {
	var all []string
	for i := 1; i+1 < len(argv); i++ {
		if argv[i] == option {
			all = append(all, argv[i+1])
		}
	}
	return all
}

// field returns a part of a value like "file=/a/b,if=virtio".
func field(value, name string) string {
	for part := range strings.SplitSeq(value, ",") {
		if key, v, _ := strings.Cut(part, "="); key == name {
			return v
		}
	}
	return ""
}
