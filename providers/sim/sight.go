package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/process"
	"vmctl/providers"
)

// sight is all that was seen of one VM.
type sight struct {
	vmFile
	onDisk bool // its file is there; else a process is all that is left of it
	life
}

// life says what runs a VM.
type life struct {
	state    string // one of providers.State…; "" if it could not be read
	reason   string // why it could not be read, or is broken
	run      *runFile
	alive    []process.Identity
	leftover string // evidence of files of a process that is gone
}

// on reports whether anything of it runs.
func (l life) on() bool { return l.state != providers.StateOff }

// The arguments of a VM's process, after those of the program: its file, by
// which it is found when nothing else is left, and whose it is.
const (
	argFile = "--file"
	argID   = "--id"
	argMark = "--mark"
)

func (p *Provider) arguments(f vmFile) ([]string, error) {
	mark, err := json.Marshal(f.Owner)
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(p.host.Args), argFile, p.vmPath(f.Name), argID, string(f.ID), argMark, string(mark)), nil
}

// trace is a process as its arguments tell.
type trace struct {
	name  string
	id    providers.ID
	owner *owner
}

func (p *Provider) traceOf(argv []string) (trace, bool) {
	var t trace
	for i := 1; i+1 < len(argv); i++ {
		switch value := argv[i+1]; argv[i] {
		case argFile:
			if name, ok := strings.CutSuffix(value, vmSuffix); ok && filepath.Dir(value) == p.path(vmsDir) {
				t.name = filepath.Base(name)
			}
		case argID:
			t.id = providers.ID(value)
		case argMark:
			// One that cannot be read is none.
			if json.Unmarshal([]byte(value), &t.owner) != nil {
				t.owner = nil
			}
		}
	}
	return t, t.name != "" && t.id != ""
}

// processesOf finds the processes of this host's VMs by their arguments: all of
// them, or those of one VM.
func (p *Provider) processesOf(ctx context.Context, only string) ([]process.Identity, map[string]trace, error) {
	traces := map[string]trace{}
	found, err := p.processes.Find(ctx, func(argv []string) bool {
		t, ok := p.traceOf(argv)
		if !ok || only != "" && t.name != only {
			return false
		}
		traces[t.name] = t
		return true
	})
	if errors.Is(err, fs.ErrPermission) { // other users' processes are none of ours
		err = nil
	}
	return found, traces, err
}

// strays are the processes of VMs whose pid file does not name them.
type strays struct {
	of     map[string][]process.Identity
	traces map[string]trace
	err    error // there may be more
}

// findStrays looks for processes that none of the pid files names.
func (p *Provider) findStrays(ctx context.Context, named []process.Identity) strays {
	s := strays{of: map[string][]process.Identity{}}
	all, traces, err := p.processesOf(ctx, "")
	s.traces, s.err = traces, err
	if !slices.ContainsFunc(all, func(id process.Identity) bool { return !contains(named, id) }) {
		return s
	}
	for name := range traces {
		found, _, err := p.processesOf(ctx, name)
		s.err = errors.Join(s.err, err)
		for _, id := range found {
			if !contains(named, id) {
				s.of[name] = append(s.of[name], id)
			}
		}
	}
	return s
}

func contains(all []process.Identity, id process.Identity) bool {
	return slices.ContainsFunc(all, func(other process.Identity) bool {
		return other.PID == id.PID && other.StartTime == id.StartTime
	})
}

// look reads one VM. One that does not exist, neither as a file nor as a
// process, is fs.ErrNotExist.
func (p *Provider) look(ctx context.Context, name string) (sight, error) {
	f, err := p.readVM(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return sight{}, err
	}
	missing := err != nil
	if f.Weightless {
		return p.weigh(f, strays{}), nil
	}
	if p.weightless && missing {
		return sight{}, err
	}
	found, traces, findErr := p.processesOf(ctx, name)
	s := strays{of: map[string][]process.Identity{name: found}, traces: traces, err: findErr}
	if missing {
		t, ok := traces[name]
		if !ok || len(found) == 0 {
			return sight{}, errors.Join(err, findErr)
		}
		return p.ghost(t, found), nil
	}
	return p.weigh(f, s), nil
}

// ghost is a VM of which only processes are left.
func (p *Provider) ghost(t trace, alive []process.Identity) sight {
	return sight{
		vmFile: vmFile{ID: t.id, Name: t.name, Owner: t.owner},
		life: life{
			state: providers.StateBroken, alive: alive,
			reason: fmt.Sprintf("%s runs it, and its file %s is gone", pids(alive), p.vmPath(t.name)),
		},
	}
}

// weigh reads what runs a VM.
func (p *Provider) weigh(f vmFile, s strays) sight {
	r, err := p.readRun(f)
	if err != nil {
		return sight{vmFile: f, onDisk: true, life: life{reason: err.Error(), run: nil}}
	}
	l := life{run: r}
	if f.Weightless {
		l.state = providers.StateOff
		if r != nil && !p.hasEnded(r) {
			l.state = providers.StateRunning
		} else if r != nil {
			l.leftover = "its record says that it ran, and that it has ended"
		}
		return sight{vmFile: f, onDisk: true, life: l}
	}
	return sight{vmFile: f, onDisk: true, life: p.verify(l, s, f)}
}

func (p *Provider) hasEnded(r *runFile) bool {
	return r.Ended || !r.Ends.IsZero() && !p.settings.Now().Before(r.Ends)
}

// verify compares a pid file with the processes that there are.
func (p *Provider) verify(l life, s strays, f vmFile) life {
	verdict, reason := process.Gone, ""
	if l.run != nil {
		verdict, reason = p.processes.Verify(*l.run.Process)
	}
	for _, id := range s.of[f.Name] {
		if l.run == nil || !contains([]process.Identity{*l.run.Process}, id) {
			l.alive = append(l.alive, id)
		}
	}
	lost := len(l.alive) > 0
	switch verdict {
	case process.Unknown:
		l.reason = reason
		return l
	case process.Match:
		l.state = providers.StateRunning
		if lost {
			l.state = providers.StateBroken
			l.reason = fmt.Sprintf("%s runs it too, beside the process that its pid file names", pids(l.alive))
		}
		l.alive = slices.Insert(l.alive, 0, *l.run.Process)
		return l
	case process.Gone, process.Reused:
		if l.run != nil {
			l.leftover = fmt.Sprintf("its pid file names a process that is gone: %s", reason)
		}
	default:
		panic("unknown verdict " + string(verdict))
	}
	switch {
	case lost:
		l.state = providers.StateBroken
		l.reason = pids(l.alive) + " runs it, and it has no pid file"
		if l.run != nil {
			l.reason = pids(l.alive) + " runs it, and its pid file names another that is gone"
		}
	case s.err != nil:
		l.reason = "it has no process that is known, and it cannot be said that none runs it: " + s.err.Error()
	default:
		l.state = providers.StateOff
	}
	return l
}

func pids(all []process.Identity) string {
	words := make([]string, len(all))
	for i, id := range all {
		words[i] = fmt.Sprintf("pid %d", id.PID)
	}
	return strings.Join(words, ", ")
}
