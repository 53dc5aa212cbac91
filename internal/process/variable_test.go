package process_test

import (
	"errors"
	"testing"

	"vmctl/internal/process"
)

// variables is a system that shows the variables of its processes.
type variables struct {
	*fakeSystem
	has    map[int]bool
	hidden map[int]int // pid -> looks until its variables are known
	host   error
	pids   error
}

func (v variables) HasVariable(pid int, entry string) (has, known bool) {
	if v.hidden[pid] > 0 {
		v.hidden[pid]--
		return false, false
	}
	return v.has[pid] && entry == "A=b", true
}

func (v variables) HostIdentity() (process.HostIdentity, error) {
	if v.host != nil {
		return process.HostIdentity{}, v.host
	}
	return v.fakeSystem.HostIdentity()
}

func (v variables) PIDs() ([]int, error) {
	if v.pids != nil {
		return nil, v.pids
	}
	return v.fakeSystem.PIDs()
}

func TestWithVariableLooksTwice(t *testing.T) {
	fake := newFakeWorld().system
	has, without, late, never, ended, kernel, gone := fake.run(0, "has"), fake.run(0, "without"), fake.run(0, "late"),
		fake.run(0, "never"), fake.run(0, "ended"), fake.run(0, "kernel"), fake.run(0, "gone")
	kernel.facts.Exe = ""
	fake.end(ended)
	fake.unreadable = map[int]any{gone.pid: process.ErrNone}
	system := variables{
		fakeSystem: fake,
		has: map[int]bool{
			has.pid: true, late.pid: true, never.pid: true, ended.pid: true, kernel.pid: true, gone.pid: true,
		},
		hidden: map[int]int{late.pid: 1, never.pid: 2, kernel.pid: 1},
	}
	found, err := process.NewHost(system).WithVariable(t.Context(), "A=b")
	must(t, err)
	var pids []int
	for _, id := range found {
		pids = append(pids, id.PID)
	}
	if len(pids) != 2 || pids[0] != has.pid || pids[1] != late.pid {
		t.Errorf("found %v, want %d and %d, and not %d", pids, has.pid, late.pid, without.pid)
	}
}

func TestWithVariableNeedsTheProcesses(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		system process.System
		want   error
	}{
		"a system that shows none": {newFakeWorld().system, errors.ErrUnsupported},
		"no identity of the host":  {variables{fakeSystem: newFakeWorld().system, host: broken}, broken},
		"no list of processes":     {variables{fakeSystem: newFakeWorld().system, pids: broken}, broken},
	} {
		if found, err := process.NewHost(test.system).WithVariable(t.Context(), "A=b"); !errors.Is(err, test.want) || found != nil {
			t.Errorf("%s: %v, %v; want %v", name, found, err, test.want)
		}
	}
}
