package lima

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

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
	of     map[string]map[role][]process.Found // by the instance's name
	err    error                               // there may be more
	hidden error                               // there may be more, all of other users
	locks  map[string][]string                 // the disks that an instance has locked, by its name
	wsl    wslContent
}

// find finds the processes of all instances of the home.
func (p *Provider) find(ctx context.Context) found {
	f := found{of: map[string]map[role][]process.Found{}, locks: p.readLocks(), wsl: p.readWSL(ctx)}
	all, err := p.processes.Search(ctx, func(argv []string) bool {
		_, _, ours := p.roleOf(argv)
		return ours
	})
	if errors.Is(err, fs.ErrPermission) {
		f.hidden = err
	} else {
		f.err = err
	}
	for _, one := range all {
		name, r, _ := p.roleOf(one.Argv)
		if !p.isOf(name, r, one) {
			continue
		}
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

// unreadable returns the reason why an instance may have more processes than were found; nil: it has no
// more. A process of another user counts if a pid file of the instance names it; one that cannot be seen at all, if the
// instance shows in another way that it may run.
func (p *Provider) unreadable(ctx context.Context, name string, f found) error {
	if f.err != nil {
		return f.err
	}
	if len(f.of[name]) == 0 {
		if err := p.mayRunUnseen(ctx, name); err != nil {
			return err
		}
	}
	if f.hidden == nil || len(f.of[name]) == len(pidFiles) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, captureLimit)
	defer cancel()
	for _, file := range []string{agentPid, driverPid} {
		path := p.path(name, file)
		pid, err := readPid(path)
		if err != nil { // it names no process
			continue
		}
		if _, err := p.processes.Capture(ctx, pid); err != nil && !errors.Is(err, process.ErrGone) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// captureLimit is the time that a process has to run its final program.
const captureLimit = 2 * time.Second

// readPid reads a pid file.
func readPid(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0, errors.New("it names no process")
	}
	return pid, nil
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

// isOf reports whether a process with the arguments of one of an instance's is one: it is of this user or of the owner
// of the instance, and its program is one for that role. What cannot be read may be that. Others only have such
// arguments.
func (p *Provider) isOf(name string, r role, f process.Found) bool {
	if f.UID != -1 && f.UID != p.host.UID && f.UID != ownerOf(p.dir(name)) && f.UID != ownerOf(p.home) {
		return false
	}
	return f.Exe == "" || strings.Contains(strings.ToLower(filepath.Base(f.Exe)), programWords[r])
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
