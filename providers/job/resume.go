package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

// resumes returns the job that a block continues; "": none.
func resumes(want cty.Value) ID {
	return ID(ctyread.Text(ctyread.Attr(want, "resume"), "from"))
}

// EndsWithCopy reports whether the session of an agent ends with the copy that a job runs in: the copy of another job is another folder.
func EndsWithCopy(agent string, c Containment) bool {
	a := AgentOf(agent)
	return c == InCopy && a != nil && a.SessionHasFolder()
}

// HasSession reports whether a job has a session that could go on, as far as its record tells.
func (r Record) HasSession() bool { return r.Session != "" && !EndsWithCopy(r.Agent, r.Containment) }

// NoSessionError reports that a job has no session that could go on.
type NoSessionError struct{ Job Record }

// Error names the job and its agent.
func (e *NoSessionError) Error() string {
	if EndsWithCopy(e.Job.Agent, e.Job.Containment) {
		return fmt.Sprintf("continue job %s: %s finds its session in the folder alone that it began in, and that was the job's own copy of the workspace", e.Job.ID, e.Job.Agent)
	}
	return fmt.Sprintf("continue job %s: %s has no session that could be resumed", e.Job.ID, e.Job.Agent)
}

// OtherJobError reports that the session of a job is not one that a block can continue.
type OtherJobError struct {
	ID     ID
	Reason string
}

// Error names the job and the reason.
func (e *OtherJobError) Error() string { return fmt.Sprintf("continue job %s: %s", e.ID, e.Reason) }

// SessionInUseError reports that a job which has not ended goes on with the session of another one.
type SessionInUseError struct {
	ID, By ID // the job to continue, and that job
	Status Status
}

// Error names both jobs.
func (e *SessionInUseError) Error() string {
	return fmt.Sprintf("continue job %s: job %s goes on with its session, and is %s", e.ID, e.By, e.Status)
}

// Free fails with a *SessionInUseError while another job goes on with the session of one that has ended: two agents would write one
// conversation.
func (s Store) Free(ctx context.Context, id ID, o Observer) error {
	all, _, err := s.List()
	if err != nil {
		return err
	}
	return s.isFree(ctx, all, id, o)
}

// isFree is Free by the records of all jobs. "": there is nothing to continue.
func (s Store) isFree(ctx context.Context, all []Record, id ID, o Observer) error {
	if id == "" {
		return nil
	}
	parents := map[ID]ID{}
	for _, r := range all {
		parents[r.ID] = r.Parent
	}
	for _, r := range all {
		if r.Status.IsTerminal() || firstOf(parents, r.ID) != firstOf(parents, id) {
			continue
		}
		if now, d := s.Look(ctx, r, o); !d.Status.IsTerminal() {
			return &SessionInUseError{ID: id, By: now.ID, Status: d.Status}
		}
	}
	return nil
}

// firstOf returns the first of the jobs that lead to a job, each of which continues the one before: all have one session.
func firstOf(parents map[ID]ID, id ID) ID {
	for seen := map[ID]bool{}; parents[id] != "" && !seen[id]; id = parents[id] {
		seen[id] = true
	}
	return id
}

// Session returns the session of a job, also of one whose record was cut short before it had that. It fails with a
// *NoSessionError if there is none, or if it ended with the copy that the job ran in.
func (s Store) Session(r Record) (string, error) {
	if EndsWithCopy(r.Agent, r.Containment) {
		return "", &NoSessionError{Job: r}
	}
	report, err := s.ReportOf(r) // the record of a job that was cut short lacks the session
	if err != nil {
		return "", err
	}
	session := r.Session
	if report != nil {
		session = cmp.Or(session, report.Session)
	}
	if session == "" {
		return "", &NoSessionError{Job: r}
	}
	return session, nil
}

// Resume makes a run of a block go on with the session of the job that the block continues, if it does. It fails with a
// *NotFoundError, a *StateError if that job has not ended, a *SessionInUseError, a *NoSessionError, or an *OtherJobError.
func (s Store) Resume(ctx context.Context, run *BlockRun, o Observer) error {
	if run.Resumes == "" {
		return nil
	}
	r, err := s.Read(run.Resumes)
	if err != nil {
		return err
	}
	r, d := s.Look(ctx, r, o)
	switch {
	case !d.Status.IsTerminal():
		return &StateError{ID: r.ID, Status: d.Status, Want: "continue"}
	case r.Agent != run.Agent:
		return &OtherJobError{ID: r.ID, Reason: fmt.Sprintf("it is one of the agent %s, and %s has the agent %s", r.Agent, run.Block, run.Agent)}
	case r.Workspace != run.Workspace:
		return &OtherJobError{ID: r.ID, Reason: fmt.Sprintf("it ran in %s, and %s runs in %s: an agent finds its session in the same folder alone", cmp.Or(r.Workspace, r.Dir), run.Block, run.Workspace)}
	}
	if err := s.Free(ctx, r.ID, o); err != nil {
		return err
	}
	session, err := s.Session(r)
	if err != nil {
		return err
	}
	run.Command = AgentOf(run.Agent).Resume(run.Command, session)
	return nil
}

// endFirst returns what to type about a job that has to end first.
func endFirst(id string) []providers.Advice {
	return append(providers.SayVmctl("wait for its end: ", "job", "wait", id), providers.SayVmctl("or end it: ", "job", "cancel", id)...)
}

// Next returns what to write for a job whose session ends with its copy, so that jobs after it can be continued; "": it has none at all.
func (e *NoSessionError) Next() string {
	if !EndsWithCopy(e.Job.Agent, e.Job.Containment) {
		return ""
	}
	return fmt.Sprintf("a job of %s that is to be continued needs containment %q, or the agent codex", e.Job.Agent, Uncontained)
}

// refusal returns why a run of a block that continues a job is not planned.
func refusal(run BlockRun, err error) *providers.Problem {
	var (
		none   *NotFoundError
		active *StateError
		inUse  *SessionInUseError
		ended  *NoSessionError
		id     = string(run.Resumes)
		next   = providers.SayVmctl("see which jobs there are: ", "job", "list", "--all")
	)
	switch {
	case errors.As(err, &none):
	case errors.As(err, &active):
		next = endFirst(id)
	case errors.As(err, &inUse):
		next = endFirst(string(inUse.By))
	case errors.As(err, &ended) && ended.Next() != "":
		next = providers.Say(fmt.Sprintf("take resume out of %s: a new session begins", run.Block), ended.Next())
	default:
		next = providers.SayVmctl("see how it ended: ", "job", "status", id)
	}
	return providers.Refuse(fmt.Sprintf("%v (resume.from of %s)", err, run.Block), next)
}
