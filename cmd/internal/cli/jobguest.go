package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vmctl/cmd/internal/view"
	"vmctl/internal/procenv"
	"vmctl/providers"
	"vmctl/providers/job"
	"vmctl/spec"
	"vmctl/state"
)

// guestWork says how a worker begins its work inside a VM.
type guestWork struct {
	takesUp bool // the job has begun
	ready   func(error)
}

// workInGuest runs a job inside a VM to its end.
func (a *app) workInGuest(ctx context.Context, s job.Store, r job.Record, g guestWork) error {
	own := context.WithoutCancel(ctx) // its end ends the job, not the way to it
	begun := false
	work := func(w enteredWorkspace) error {
		var environ []string
		if !g.takesUp {
			var err error
			if environ, err = s.TakeEnviron(r.ID); err != nil {
				return err
			}
		}
		host, ok := providers.Ability[providers.Host](w.system.Provider)
		if !ok {
			return fmt.Errorf("%s cannot be entered", w.address)
		}
		inside, err := host.Enter(own, *w.object, spec.Revealed(w.values()))
		if err != nil {
			return err
		}
		leave, err := a.occupy(own, s, job.Record{ID: r.ID, Command: r.Command, Workspace: r.Workspace}) // its VM is entered
		if err != nil {
			return err
		}
		begun = true
		worker := job.GuestWorker{Store: s, Guest: inside, ID: r.ID, Environ: environ, TakesUp: g.takesUp, Now: a.now, Ready: g.ready}
		return worker.Run(ctx, leave)
	}
	err := a.inWorkspace(own, r.Workspace, "job "+string(r.ID)+" of", r.Command[0], work)
	var early before
	if errors.As(err, &early) {
		err = early.err
	}
	if err == nil || begun {
		return err
	}
	_, failed := s.Update(own, r.ID, func(r *job.Record) error { return notBegun(r, err, a) })
	g.ready(err)
	return errors.Join(err, failed)
}

// notBegun ends the record of a job that no worker could take. One that had begun has ended if its VM does not run; else
// nobody knows, and the record stays.
func notBegun(r *job.Record, err error, a *app) error {
	if r.Status == job.Queued {
		return job.Abandon(r, job.NotEntered, err.Error(), a.now())
	}
	var known *problem
	if errors.As(err, &known) && known.Code == "not_running" {
		return job.Close(r, err.Error(), a.now())
	}
	return nil
}

// takeUp starts another worker for a job in a VM whose worker is gone.
func (a *app) takeUp(ctx context.Context, s job.Store, r job.Record) error {
	if !a.observer().NeedsWorker(r) {
		return nil
	}
	_, err := s.Start(ctx, r.ID, a.guestLaunch(s, r.ID, "--take-up"), a.now)
	if now, unread := s.Read(r.ID); err != nil && unread == nil && now.Status.IsTerminal() {
		return nil // its record tells
	}
	return err
}

// guestLaunch starts the worker of a job in a VM: as this command was started, so that it finds the same project.
func (a *app) guestLaunch(s job.Store, id job.ID, more ...string) job.Launch {
	args := slices.Concat(a.ownFlags(planFlags{}).Global, []string{jobWorker}, more, []string{s.Dir, string(id)})
	return job.Launch{Program: a.env.Program, Args: args, Dir: a.env.Dir, Environ: slices.Concat(a.env.Environ, []string{job.GuestMarker + "=" + string(id)})}
}

// guestEnviron returns the variables of this process that a job in a VM gets, and those that are set for it.
func (a *app) guestEnviron(r jobRequest) (environ, warnings []string) {
	passed := procenv.Named(a.env.Environ, r.pass)
	return job.Environ{From: passed, Pass: r.pass, Set: r.set, StripProxy: r.stripProxy}.Build()
}

// takeUpJobs starts workers for all jobs in VMs whose worker is gone.
func (a *app) takeUpJobs(ctx context.Context, s job.Store) error {
	all, _, err := s.List()
	for _, r := range all {
		if err := a.takeUp(ctx, s, r); err != nil {
			view.Warning(a.errScreen(), fmt.Sprintf("take up job %s: %v", r.ID, err))
		}
		if !r.Status.IsTerminal() || r.Inside == "" || r.LeftCopy == nil {
			continue
		}
		if err := a.collectCopy(ctx, s, r); err != nil {
			view.Warning(a.errScreen(), fmt.Sprintf("collect the copy of job %s in %s: %v", r.ID, r.Inside, err))
		}
	}
	return err
}

// collectCopy tries again what the end of a job left undone in its VM. That its copy is still there is no error.
func (a *app) collectCopy(ctx context.Context, s job.Store, r job.Record) error {
	p, err := a.openRecorded(ctx)
	if err != nil {
		return err
	}
	snapshot, _, err := a.readBeside(ctx, p)
	if err != nil {
		return err
	}
	was, err := spec.ParseAddress(r.Inside)
	if err != nil {
		return err
	}
	addr, known := nowAt(p, snapshot, was)
	if !known {
		return a.loseCopy(ctx, s, r)
	}
	leave, err := a.enter(ctx, p, addr, jobWords(r))
	if err != nil {
		return err
	}
	err = a.collectInside(ctx, p, s, copyInside{r, addr})
	return errors.Join(err, leave())
}

// copyInside is the copy of a job, and the address of the VM that it is in.
type copyInside struct {
	job.Record
	vm spec.Address
}

func (a *app) collectInside(ctx context.Context, p *project, s job.Store, c copyInside) (err error) {
	seen, err := a.observeAt(ctx, p, c.vm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seen.world.Close()) }()
	vm := seen.at(c.vm)
	if vm.status().State == "missing" {
		return a.loseCopy(ctx, s, c.Record)
	}
	if _, err := a.runningIn(seen, c.vm.String()); err != nil {
		return err
	}
	inside, err := a.guest(ctx, vm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inside.Close()) }()
	worker := job.GuestWorker{Store: s, Guest: inside, ID: c.ID, Now: a.now}
	return worker.Collect(ctx)
}

// loseCopy records that the copy of a job is gone with its VM, and tells it.
func (a *app) loseCopy(ctx context.Context, s job.Store, r job.Record) error {
	why, err := s.LoseCopy(ctx, r)
	if why != "" {
		view.Warning(a.errScreen(), fmt.Sprintf("job %s: %s", r.ID, why))
	}
	return err
}

// nowAt returns the address of a VM that had another one when a job began in it; false: nothing has it.
func nowAt(p *project, s *state.Snapshot, was spec.Address) (now spec.Address, ok bool) {
	all := known(p, s)
	i := slices.IndexFunc(all, func(addr spec.Address) bool { return addr == was })
	if i < 0 {
		i = slices.IndexFunc(all, func(addr spec.Address) bool { return slices.Contains(s.Records[addr].Was, was) })
	}
	if i < 0 {
		return now, false
	}
	return all[i], true
}
