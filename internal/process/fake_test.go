package process_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"vmctl/internal/process"
)

// fakeWorld is an operating system as Windows is one: no groups, children keep
// the number of their parent, and only who listens can be asked.
type fakeWorld struct{ system *fakeSystem }

func newFakeWorld() fakeWorld {
	return fakeWorld{system: &fakeSystem{processes: map[int]*fakeProcess{}, time: 1000, lastPID: 100}}
}

func (w fakeWorld) Host() process.Host { return process.NewHost(w.system) }

func (w fakeWorld) Run(t *testing.T, as string) *actor {
	t.Helper()
	top := w.system.run(0, as)
	a := &actor{
		Heard:   func() { <-top.heard },
		LetGo:   func() { w.system.end(top) },
		End:     func() { w.system.end(top) },
		Collect: func() { <-top.ended; w.system.remove(top.pid) },
	}
	switch as {
	case "tree":
		branch := w.system.run(top.pid, "branch")
		a.Below = w.identify(t, branch, w.system.run(branch.pid, "deaf"))
	case "family":
		a.Below = w.identify(t, w.system.run(top.pid, "deaf"), w.system.run(top.pid, "deaf"))
	}
	a.Identity = w.identify(t, top)[0]
	return a
}

func (w fakeWorld) identify(t *testing.T, all ...*fakeProcess) []process.Identity {
	t.Helper()
	var ids []process.Identity
	for _, p := range all {
		id, err := w.Host().Capture(t.Context(), p.pid)
		must(t, err)
		ids = append(ids, id)
	}
	return ids
}

type fakeSystem struct {
	mu            sync.Mutex
	processes     map[int]*fakeProcess
	time          uint64
	lastPID       int
	broken        error       // of the whole table
	unreadable    map[int]any // pid -> error or process.Facts
	beforeRequest func()
	denied        error // to whoever signals
	unheld        error // to whoever wants to hold a process
}

type fakeProcess struct {
	pid, parent  int
	as           string
	facts        process.Facts
	heard, ended chan struct{}
}

func (s *fakeSystem) run(parent int, as string) *fakeProcess {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastPID++
	return s.put(s.lastPID, parent, as)
}

// put gives a pid to a new process, whoever had it.
func (s *fakeSystem) put(pid, parent int, as string) *fakeProcess {
	s.time++
	exe := `C:\actors\` + as + ".exe"
	p := &fakeProcess{
		pid: pid, parent: parent, as: as, heard: make(chan struct{}), ended: make(chan struct{}),
		facts: process.Facts{Start: s.time, Exe: exe, Argv: []string{exe, mark}},
	}
	s.processes[pid] = p
	return p
}

func (s *fakeSystem) recycle(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.processes[pid]
	s.put(pid, 0, "stranger")
	if !before.facts.Ended {
		close(before.ended)
	}
}

func (s *fakeSystem) remove(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.processes, pid)
}

func (s *fakeSystem) end(p *fakeProcess) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.facts.Ended {
		p.facts.Ended = true
		close(p.ended)
	}
}

func (s *fakeSystem) HostIdentity() (process.HostIdentity, error) {
	return process.HostIdentity{Host: "ada", Machine: "m1", Boot: "b1", Namespace: "n1"}, s.broken
}

func (s *fakeSystem) Look(pid int) (process.Facts, error) {
	neverAsked(pid)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch instead := s.unreadable[pid].(type) {
	case error:
		return process.Facts{}, instead
	case process.Facts:
		return instead, nil
	}
	if p := s.processes[pid]; p != nil {
		return p.facts, nil
	}
	return process.Facts{}, process.ErrNone
}

func (s *fakeSystem) PIDs() ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pids []int
	for pid := range s.processes {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids, s.broken
}

func (s *fakeSystem) Tree(pid int) ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parents := map[int]int{}
	for _, p := range s.processes {
		parents[p.pid] = p.parent
	}
	return process.Descendants(pid, parents, func(pid int) (uint64, error) {
		if p := s.processes[pid]; p != nil {
			return p.facts.Start, nil
		}
		return 0, process.ErrNone
	}), s.broken
}

func (s *fakeSystem) Open(pid int) (process.Handle, error) {
	neverAsked(pid)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unheld != nil {
		return nil, s.unheld
	}
	if p := s.processes[pid]; p != nil {
		return &fakeHandle{system: s, process: p}, nil
	}
	return nil, process.ErrNone
}

// neverAsked holds the line at numbers that mean a group, or everybody.
//
// row L05
func neverAsked(pid int) {
	if pid <= 1 {
		panic(fmt.Sprintf("pid %d reached the system", pid))
	}
}

// fakeHandle means one process, whoever has its pid.
type fakeHandle struct {
	system  *fakeSystem
	process *fakeProcess
	closed  bool
}

func (h *fakeHandle) Request() error {
	if h.system.beforeRequest != nil {
		h.system.beforeRequest()
	}
	if h.system.denied != nil {
		return h.system.denied
	}
	if h.hasEnded() {
		return process.ErrNone
	}
	switch h.process.as {
	case "polite":
		h.system.end(h.process)
	case "late":
		close(h.process.heard)
	case "deaf", "tree", "branch", "family":
	default:
		panic(fmt.Sprintf("a request reached %s", h.process.as))
	}
	return nil
}

func (h *fakeHandle) Force() error {
	if h.system.denied != nil {
		return h.system.denied
	}
	if h.hasEnded() {
		return process.ErrNone
	}
	pids, err := h.system.Tree(h.process.pid)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		h.system.mu.Lock()
		p := h.system.processes[pid]
		h.system.mu.Unlock()
		if p.as == "stranger" {
			panic("force reached a stranger")
		}
		h.system.end(p)
	}
	return nil
}

func (h *fakeHandle) hasEnded() bool {
	select {
	case <-h.process.ended:
		return true
	default:
		return false
	}
}

func (h *fakeHandle) Ended(ctx context.Context) bool {
	select {
	case <-h.process.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

func (h *fakeHandle) Close() error {
	if h.closed {
		return errors.New("closed twice")
	}
	h.closed = true
	return nil
}
