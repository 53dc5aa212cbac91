package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/busy"
	"vmctl/cmd/internal/view"
	"vmctl/internal/process"
	"vmctl/providers/job"
	"vmctl/spec"
	"vmctl/state"
)

// places returns the addresses of all that a job runs in, from the outside in.
func places(r job.Record) ([]spec.Address, error) {
	var all []spec.Address
	for _, text := range []string{r.Inside, r.Workspace} {
		if text == "" {
			continue
		}
		addr, err := spec.ParseAddress(text)
		if err != nil {
			return nil, err
		}
		all = append(all, addr)
	}
	return all, nil
}

// occupy marks all that a job runs in as in use by this process, until leave is called.
func (a *app) occupy(ctx context.Context, s job.Store, r job.Record) (leave func() error, err error) {
	addrs, err := places(r)
	if err != nil {
		return nil, err
	}
	me, err := a.self(jobWords(r))
	if err != nil {
		return nil, err
	}
	folder := busy.Folder{Dir: filepath.Join(filepath.Dir(s.Dir), busyLocks)}
	var entered []func() error
	leave = func() error {
		var errs []error
		for _, out := range slices.Backward(entered) {
			errs = append(errs, out())
		}
		return errors.Join(errs...)
	}
	for _, addr := range addrs {
		out, err := folder.Enter(ctx, addr, me)
		if err != nil {
			return nil, errors.Join(err, leave())
		}
		entered = append(entered, out)
	}
	return leave, nil
}

// jobWords names a job for those who wait for it: what it runs, without its arguments.
func jobWords(r job.Record) string {
	program, _, _ := strings.Cut(filepath.Base(r.Command[0]), "\n")
	return "job " + string(r.ID) + " (" + program + ")"
}

// orphanJobs lists, for each VM and workspace, the jobs that may still run in it and whose worker is gone: their record
// alone keeps others out.
func (p *project) orphanJobs(ctx context.Context) (map[spec.Address][]state.Holder, error) {
	records, _, err := job.Store{Dir: filepath.Join(p.dir, jobRecords)}.List()
	if err != nil {
		return nil, err
	}
	all := map[spec.Address][]state.Holder{}
	for _, r := range records {
		if !(job.Observer{Processes: process.Host{}}).IsOrphan(ctx, r) {
			continue
		}
		addrs, err := places(r)
		if err != nil {
			continue // it names nothing that could be taken down
		}
		h := state.Holder{PID: r.Worker.PID, Host: r.Worker.Host, Command: jobWords(r), Since: r.Started}
		if r.Process != nil {
			h.PID = r.Process.PID
		}
		for _, addr := range addrs {
			all[addr] = append(all[addr], h)
		}
	}
	return all, nil
}

// reconcileJobs ends the records of jobs of which nothing lives any more, and tells of each.
func (a *app) reconcileJobs(ctx context.Context, p *project, command string) error {
	s := a.jobs(p, command)
	if err := a.takeUpJobs(ctx, s); err != nil {
		return err
	}
	closed, failed, err := s.ReconcileAll(ctx, a.observer())
	for _, r := range closed {
		next := a.commandLine("job continue", planFlags{}, string(r.ID))
		if r.ErrorCode == job.NotLaunched || job.EndsWithCopy(r.Agent, r.Containment) { // it has nothing to go on with
			next = a.againLine(r)
		}
		view.Warning(a.errScreen(), fmt.Sprintf("job %s is %s: %s; %s", r.ID, r.Status, r.Reason, next))
		if r.LeftCopy != nil {
			view.Warning(a.errScreen(), (&job.LeftCopyError{ID: r.ID, Left: *r.LeftCopy}).Error())
		}
	}
	for _, err := range failed {
		view.Warning(a.errScreen(), err.Error())
	}
	return err
}
