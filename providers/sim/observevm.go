package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/process"
	"vmctl/providers"
)

// observedVM holds all observations of one VM.
type observedVM struct {
	vmFile
	onDisk bool // its file exists; else only processes or its root disk are left
	processState
	root  bool                    // its root disk is there
	lock  lock                    // of its root disk
	disks map[string]observedDisk // the existing disks that it is defined or runs with, by name

	network func(placed) string // the planner's name of a network; nil: its own

	digest func(string) string // of attributes that may be sensitive; nil: there is no key
}

// processState describes the processes and the run state of a VM.
type processState struct {
	state    string // one of providers.State…; "" if it could not be read
	reason   string // the reason for a broken or unreadable state
	run      *runFile
	alive    []process.Identity
	agent    *process.Identity // of its host agent, which is alive, too
	runs     string            // evidence that it runs; "": the processes in alive
	leftover string            // evidence of files of a process that is gone
}

// on reports whether any process of the VM runs.
func (l processState) on() bool { return l.state != providers.StateOff }

// The arguments of a VM's process, after those of the program: the VM's file, by which the
// process is found when nothing else is left, and the VM's owner.
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

// trace holds the arguments of a VM's process.
type trace struct {
	name  string
	id    providers.ID
	owner *owner
	agent bool // a host agent is among the processes of this name
}

func (p *Provider) traceOf(argv []string) (trace, bool) {
	t := trace{agent: slices.Contains(argv, argAgent)}
	for i := 1; i+1 < len(argv); i++ {
		switch value := argv[i+1]; argv[i] {
		case argFile:
			if name, ok := strings.CutSuffix(value, vmSuffix); ok && filepath.Dir(value) == p.path(vmsDir) {
				t.name = filepath.Base(name)
			}
		case argID:
			t.id = providers.ID(value)
		case argMark:
			// An unreadable owner is no owner.
			if json.Unmarshal([]byte(value), &t.owner) != nil {
				t.owner = nil
			}
		}
	}
	return t, t.name != "" && t.id != ""
}

// processesOf finds the processes of this host's VMs by their arguments: of all VMs, or of
// the VM only.
func (p *Provider) processesOf(ctx context.Context, only string) ([]process.Identity, map[string]trace, error) {
	traces := map[string]trace{}
	found, err := p.processes.Find(ctx, func(argv []string) bool {
		t, ok := p.traceOf(argv)
		if !ok || only != "" && t.name != only {
			return false
		}
		t.agent = t.agent || traces[t.name].agent
		traces[t.name] = t
		return true
	})
	if errors.Is(err, fs.ErrPermission) { // other users' processes are not ours
		err = nil
	}
	return found, traces, err
}

// foundProcesses holds the processes that were found of the host's VMs, and the locks of disks.
type foundProcesses struct {
	all    []process.Identity            // whether a pid file names them or not
	of     map[string][]process.Identity // by the VM; of a look at all VMs, only those that no pid file names
	traces map[string]trace
	err    error             // there may be more
	locks  map[string]holder // of disks, by their names
}

// find finds the processes of one VM, or of all.
func (p processRunner) find(ctx context.Context, name string) foundProcesses {
	found, traces, err := p.processesOf(ctx, name)
	return foundProcesses{all: found, of: map[string][]process.Identity{name: found}, traces: traces, err: err, locks: p.diskLocks()}
}

// findAll finds the processes of the host's VMs. A host whose VMs are all weightless has
// nothing to look for.
func (p *Provider) findAll(ctx context.Context, all []reading) foundProcesses {
	var named []process.Identity
	looks := !p.weightless
	for _, r := range all {
		if r.err != nil {
			continue
		}
		looks = looks || !r.Weightless
		if run, err := p.runnerOf(r.vmFile).readRun(r.vmFile); err == nil && run != nil && run.Process != nil {
			named = append(named, *run.Process)
		}
		if !r.HostAgent {
			continue
		}
		if agent, err := p.readAgent(r.vmFile); err == nil && agent != nil {
			named = append(named, *agent)
		}
	}
	if !looks {
		return foundProcesses{}
	}
	return p.unrecorded(ctx, named)
}

// unrecorded finds the processes of all VMs, and tells apart those that are not named.
func (p *Provider) unrecorded(ctx context.Context, named []process.Identity) foundProcesses {
	s := foundProcesses{of: map[string][]process.Identity{}, locks: p.diskLocks()}
	s.all, s.traces, s.err = p.processesOf(ctx, "")
	if !slices.ContainsFunc(s.all, func(id process.Identity) bool { return !contains(named, id) }) {
		return s
	}
	for name := range s.traces {
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

// observeVM reads one VM. A VM without a file, a root disk and a process is fs.ErrNotExist.
func (p *Provider) observeVM(ctx context.Context, name string) (observedVM, error) {
	f, err := p.readVM(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return observedVM{}, err
	}
	if err != nil {
		return p.observeRemains(name, p.newRunner().find(ctx, name))
	}
	r := p.runnerOf(f)
	s := r.find(ctx, name)
	seen := r.observe(ctx, f, s)
	seen.digest = p.settings.Digest
	seen.disks = map[string]observedDisk{}
	for _, d := range seen.uses() {
		if s, err := p.observeDisk(d.Name, s.all); err == nil {
			seen.disks[d.Name] = s
		}
	}
	return seen, nil
}

// uses returns the disks that the VM is defined or runs with.
func (s observedVM) uses() []attached {
	var all []attached
	if s.Config != nil {
		all = slices.Clone(s.Config.Disks)
	}
	if s.on() && s.run != nil {
		all = append(all, s.run.With.Disks...)
	}
	return all
}

// locked returns the disks whose locks the VM's processes hold, and which they really use:
// first those in written, in its order, and then the others.
func (s foundProcesses) locked(alive []process.Identity, written ...attached) []attached {
	held := map[string]bool{}
	for name, h := range s.locks {
		if contains(alive, h.Process) {
			held[name] = true
		}
	}
	var all []attached
	for _, a := range written {
		if held[a.Name] {
			all = append(all, a)
			delete(held, a.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		all = append(all, attached{Name: name})
	}
	return all
}

// observeRemains reads a VM whose file is gone, and of which processes or a root disk are left.
// fs.ErrNotExist: nothing is left.
func (p *Provider) observeRemains(name string, s foundProcesses) (observedVM, error) {
	g := observedVM{processState: processState{alive: s.of[name]}}
	if len(g.alive) > 0 {
		t := s.traces[name]
		g.vmFile = vmFile{ID: t.id, Name: name, Owner: t.owner, HostAgent: t.agent}
		g.state, g.reason = providers.StateBroken, fmt.Sprintf("%s runs it, and its file %s is gone", process.Words(g.alive), p.vmPath(name))
	}
	h, err := p.readRoot(name)
	g.root = err == nil
	switch {
	case len(g.alive) > 0: // the processes tell enough
	case errors.Is(err, fs.ErrNotExist):
		return observedVM{}, errors.Join(err, s.err)
	case err != nil:
		return observedVM{}, err
	case s.err != nil:
		g.vmFile, g.reason = vmFile{ID: h.ID, Name: name, Owner: h.Owner}, reasonUnseen+": "+s.err.Error()
	default:
		g.vmFile, g.state = vmFile{ID: h.ID, Name: name, Owner: h.Owner}, providers.StateOff
	}
	if g.state != stateUnknown {
		g.lock = p.observeLock(p.rootLock(name), g.alive)
	}
	return g, nil
}

// observe reads the processes and the run state of a VM.
func (p processRunner) observe(_ context.Context, f vmFile, s foundProcesses) observedVM {
	r, err := p.readRun(f)
	if err != nil {
		return observedVM{vmFile: f, onDisk: true, root: true, processState: processState{reason: err.Error(), run: nil}}
	}
	l := processState{run: r}
	_, err = os.Lstat(p.rootPath(f.Name))
	seen := observedVM{vmFile: f, onDisk: true, processState: p.verify(l, s, f), root: !errors.Is(err, fs.ErrNotExist)}
	if seen.state != stateUnknown { // else its own process may hold it
		seen.lock = p.observeLock(p.rootLock(f.Name), seen.alive)
	}
	if r != nil && seen.on() {
		var written []attached
		if f.Config != nil {
			written = slices.Clone(f.Config.Disks)
		}
		r.With.Disks = s.locked(seen.alive, append(written, r.With.Disks...)...)
	}
	return seen
}

// verify compares a pid file with the processes that there are.
func (p *Provider) verify(l processState, s foundProcesses, f vmFile) processState {
	var named *process.Identity
	if l.run != nil {
		named = l.run.Process
	}
	record, why := p.recorded(named)
	besides, found := unrecordedNone, slices.DeleteFunc(slices.Clone(s.of[f.Name]), func(id process.Identity) bool {
		return named != nil && contains([]process.Identity{*named}, id)
	})
	switch {
	case len(found) > 0:
		besides = unrecordedSome
	case s.err != nil:
		besides = unrecordedUnseen
	}
	row := phaseOf(record, besides, socketAt(p.socket(f.ID)))
	l.state = row.state
	if record == recordAlive {
		l.alive = append(l.alive, *named)
	}
	l.alive = append(l.alive, found...)
	switch row.reason {
	case reasonNoRecord, reasonBeside, reasonOther:
		l.reason = process.Words(found) + " " + row.reason
	case reasonUnknown:
		l.reason = p.pidPath(f.ID) + ": " + why
	case reasonUnseen:
		l.reason = reasonUnseen + ": " + s.err.Error()
	default:
		l.reason = row.reason
	}
	if row.leftover {
		l.leftover = "its socket is there, and no process that runs it"
		if l.run != nil {
			l.leftover = "its pid file names a process that is gone: " + why
		}
	}
	return l
}

func socketAt(path string) socket {
	if _, err := os.Lstat(path); err != nil {
		return socketMissing
	}
	return socketThere
}

// recorded returns the fate of the process that a pid file names.
func (p *Provider) recorded(id *process.Identity) (what recorded, why string) {
	if id == nil {
		return noRecord, ""
	}
	verdict, why := p.processes.Verify(*id)
	switch verdict {
	case process.Match:
		return recordAlive, why
	case process.Gone:
		return recordGone, why
	case process.Reused:
		return recordReused, why
	case process.Unknown:
		return recordUnknown, why
	default:
		panic("unknown verdict " + string(verdict))
	}
}
