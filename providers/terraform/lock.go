package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// stateLock describes the holder of Terraform's lock of a state, as Terraform notes it.
type stateLock struct {
	ID        string
	Operation string
	Who       string
	Created   string
	pid       int  // of the holder on this machine; 0: it is not known
	isPG      bool // it is the backend pg's, which tells nothing of the holder
}

// String describes the holder in words.
func (l *stateLock) String() string {
	if l.isPG {
		return "another session of its PostgreSQL server, which alone knows whose"
	}
	text := l.Who
	if l.pid > 0 {
		text += fmt.Sprintf(", pid %d", l.pid)
	}
	return fmt.Sprintf("%s, since %s, for %s, lock ID %s", text, l.Created, strings.TrimPrefix(l.Operation, "OperationType"), l.ID)
}

// lockOf returns the lock of a state in the data directory that a process holds. nil: none does, whatever a killed one left.
func (p *Provider) lockOf(name string) *stateLock {
	path := p.statePath(name)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), "."+stateName+".lock.info"))
	if err != nil {
		return nil // nobody holds it, or the next command of Terraform tells
	}
	pid, held := lockHolder(path)
	if !held {
		return nil
	}
	l := stateLock{}
	if json.Unmarshal(text, &l) != nil {
		l = stateLock{Who: "somebody", Created: "an unknown time", Operation: "an unknown operation", ID: "unknown"}
	}
	l.pid = pid
	return &l
}

// lockText begins the error of Terraform that tells the holder of a lock.
const lockText = "Error acquiring the state lock"

// parseLock reads the holder of a lock from an error of Terraform. nil: the error is another one.
func parseLock(text string) *stateLock {
	text = unframed(text)
	if isPGLock(text) {
		return &stateLock{isPG: true}
	}
	_, text, ok := strings.Cut(text, lockText)
	if !ok {
		return nil
	}
	between := func(from, to string) string {
		_, rest, _ := strings.Cut(text, " "+from+": ")
		value, _, _ := strings.Cut(rest, " "+to+":")
		return value
	}
	l := stateLock{ID: between("ID", "Path"), Operation: between("Operation", "Who"), Who: between("Who", "Version"), Created: between("Created", "Info")}
	if l.ID == "" {
		return nil
	}
	return &l
}

// unlocking returns the advice about the lock of a state, which vmctl never breaks. The kernel frees that of a state on this
// machine; a backend elsewhere keeps it when its holder is killed.
func (p *Provider) unlocking(m spec.TerraformModule, workspace string, l *stateLock) []providers.Advice {
	wait := fmt.Sprintf("or let vmctl wait: lock_timeout = \"10m\" in provider \"terraform\" %q", p.settings.Name)
	if l.isPG {
		return providers.Say("see whose it is: "+pgHolders(), pgAsks, "wait for that session: the server frees the lock as soon as it ends, also when its process is killed", wait)
	}
	if isRemote(m) {
		return providers.Say("wait for the process that holds it", wait,
			"or, if that was killed: "+p.commandLine(p.settingsOf(m, workspace)...)("force-unlock", l.ID))
	}
	return providers.Say("wait for the process that holds it: the lock is free as soon as that has ended", wait)
}

// lockFinding describes the lock of a workspace that a process holds.
func (p *Provider) lockFinding(name string) []providers.Finding {
	l := p.lockOf(name)
	if l == nil {
		return nil
	}
	return []providers.Finding{{
		Kind: providers.FindHeldLock, Action: "left alone: its holder has to end first",
		Evidence: []string{string(p.tool()) + "'s lock of the state of " + name + " is held by " + l.String()}, Next: p.unlocking(spec.TerraformModule{}, name, l),
	}}
}

// workspaceName returns the name of the workspace of the job.
func (j *job) workspaceName() string {
	if j.seen != nil {
		return j.seen.name
	}
	return workspaceName(j.p.settings.Project.Lineage(), j.Address, j.Object)
}

// naming names the holder of a lock in the error of an act.
func (j *job) naming(act func(context.Context) (*guard.Outcome, error)) func(context.Context) (*guard.Outcome, error) {
	return func(ctx context.Context) (*guard.Outcome, error) {
		name := j.workspaceName()
		if l := j.p.lockOf(name); l != nil && j.p.lockTimeout > 0 {
			j.log(providers.Progress{Text: fmt.Sprintf("waiting for at most %s for the state lock of %s", j.p.lockTimeout, l)})
		}
		did, err := act(ctx)
		if err == nil {
			return did, nil
		}
		text := err.Error()
		var problem *providers.Problem
		if errors.As(err, &problem) && problem.Err != nil {
			text = problem.Err.Error()
		}
		l := parseLock(text)
		if l == nil {
			return did, err
		}
		return did, &providers.Problem{
			Outcome: providers.Failed, Code: "terraform_locked", Next: j.p.unlocking(j.module, name, l),
			Err: fmt.Errorf("%s %s: %s's lock of its state is held by %s", j.Op, j.Address, j.p.tool(), l),
		}
	}
}

// lockWait returns the time that Terraform waits for a lock, as its options have it.
func (p *Provider) lockWait() string { return fmt.Sprintf("%ds", int(p.lockTimeout/time.Second)) }
