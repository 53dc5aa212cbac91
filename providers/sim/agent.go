package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"vmctl/internal/process"
	"vmctl/providers"
)

// agentRunner runs each VM as two processes: a driver, which is the process of a processRunner,
// and its host agent, which starts and supervises the driver. Each has a pid file and a socket.
type agentRunner struct{ processRunner }

// argAgent marks the process of a host agent. Its other arguments are those of its driver.
const argAgent = "--agent"

func (p *Provider) agentPid(id providers.ID) string    { return p.path(runDir, key(id)+".ha.pid") }
func (p *Provider) agentSocket(id providers.ID) string { return p.path(runDir, key(id)+".ha.sock") }

// agentFile is the pid file of a host agent.
type agentFile struct {
	Process *process.Identity `json:"process"`
}

func (p agentRunner) fits() error { return p.fitsSocket(p.agentSocket("")) }

// readAgent reads the pid file of a VM's host agent, nil if there is none.
func (p *Provider) readAgent(f vmFile) (*process.Identity, error) {
	var a agentFile
	err := readJSON(p.agentPid(f.ID), &a)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && a.Process == nil {
		err = fmt.Errorf("read %s: it names no process", p.agentPid(f.ID))
	}
	return a.Process, err
}

func (p agentRunner) writeRun(f vmFile, r *runFile) error {
	if err := p.write(p.agentPid(f.ID), agentFile{Process: r.Agent}); err != nil {
		return err
	}
	return p.processRunner.writeRun(f, r)
}

func (p agentRunner) start(ctx context.Context, j *job, f vmFile) (*runFile, error) {
	driver, err := j.launch(f, j.orders(f))
	if err != nil {
		return nil, err
	}
	agent := driver
	agent.Args = append(slices.Clone(driver.Args), argAgent)
	agent.Orders = orders{Socket: p.agentSocket(f.ID), Driver: &driver}
	id, told, err := j.run(ctx, agent)
	if err != nil {
		return nil, err
	}
	return &runFile{Agent: &id, Process: told.Process, With: *f.Config, Ports: told.Ports}, nil
}

// observe reads both processes, each by the state table of one, and joins their phases.
func (p agentRunner) observe(ctx context.Context, f vmFile, s foundProcesses) observedVM {
	agent, err := p.readAgent(f)
	if err != nil {
		return observedVM{vmFile: f, onDisk: true, root: true, processState: processState{reason: err.Error()}}
	}
	if agent != nil {
		s.of = map[string][]process.Identity{f.Name: slices.DeleteFunc(slices.Clone(s.of[f.Name]), func(id process.Identity) bool {
			return contains([]process.Identity{*agent}, id)
		})}
	}
	seen := p.processRunner.observe(ctx, f, s)
	p.join(ctx, &seen, agent)
	return seen
}

// join adds the host agent to what was observed of the driver.
func (p agentRunner) join(ctx context.Context, seen *observedVM, agent *process.Identity) {
	fate, why := p.recorded(agent)
	row := phaseOf(fate, unrecordedNone, socketAt(p.agentSocket(seen.ID)))
	if row.state == providers.StateRunning {
		row.state, why = p.hears(ctx, seen.ID)
	}
	both := pairOf(row.state, seen.state)
	switch {
	case row.state == stateUnknown:
		seen.reason = p.agentPid(seen.ID) + ": " + why
	case both.reason == reasonOrphan:
		seen.reason = strings.TrimSuffix(fmt.Sprintf(both.reason, process.Words(seen.alive))+": "+why, ": ")
	case both.reason != "":
		seen.reason = strings.TrimSuffix(fmt.Sprintf(both.reason, process.Words([]process.Identity{*agent}))+": "+seen.leftover, ": ")
	}
	seen.state = both.state
	if fate == recordAlive {
		seen.agent, seen.alive = agent, append([]process.Identity{*agent}, seen.alive...)
	}
	if row.leftover && seen.leftover == "" {
		seen.leftover = "its host agent's socket is there, and no process that listens"
		if agent != nil {
			seen.leftover = "its host agent's pid file names a process that is gone: " + why
		}
	}
}

// hears asks the host agent of a VM whether it hears, and returns its state: broken if its socket
// refuses the question, unknown if no answer comes in time.
func (p agentRunner) hears(ctx context.Context, id providers.ID) (state, why string) {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	_, err := ask(limited, p.agentSocket(id), question{Ask: askReady})
	if err == nil {
		return providers.StateRunning, ""
	}
	for _, refusal := range []error{fs.ErrNotExist, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, io.EOF} {
		if errors.Is(err, refusal) {
			return providers.StateBroken, ""
		}
	}
	return stateUnknown, "it runs, and gave no answer: " + err.Error()
}

// request asks the host agent of a running VM, which asks its driver. Of any other VM it asks the
// driver over its own socket, and each other process by itself.
func (p agentRunner) request(ctx context.Context, s observedVM) error {
	if s.state == providers.StateRunning {
		return process.Each([]process.Identity{*s.agent}, p.processes.Request)
	}
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	a, err := ask(limited, p.socket(s.ID), question{Ask: askEnd})
	return process.Each(s.alive, func(id process.Identity) error {
		if err == nil && id.PID == a.PID {
			return nil
		}
		return p.processes.Request(id)
	})
}
