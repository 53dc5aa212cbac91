package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/state"
)

// mission is a plan that is made and carried out under the run lock.
type mission struct {
	command string   // "apply"
	names   []string // its arguments
	verb    string   // "Apply"
	title   string
	idle    func(*planner.Plan) string // the text for a plan that does nothing; nil: the default text
	plan    planFlags
	apply   applyFlags
	file    string // of the saved plan; "": there is none
	unasked bool   // nothing is asked, in no round
	destroy bool
	spends  bool // on a full disk it may use the space that vmctl keeps in reserve
	cleans  bool // its names are those of orphans: none means all
	picks   bool // it is about what the command has found to be removed, and about nothing else
	options func(*state.Snapshot) (planner.Options, error)
	// check fails if the plan, made on a state, must not be carried out. nil: it may.
	check func(*planner.Plan, *state.Snapshot) error
	// named reports whether the user named this change by the command itself, so that it
	// needs no consent. nil: all changes need it.
	named   func(planner.Change) bool
	enter   func(work) []string    // the next commands after success; may be nil
	after   func()                 // may be nil
	ended   func(executor.Summary) // called after each round that had a plan to carry out; may be nil
	acts    *acting                // the action that is recorded; nil: none is
	outputs bool                   // shown at the end
	// recorded says that the records count: moved blocks of the files are edits that wait.
	recorded bool
}

// ends reports whether a mission only stops or destroys objects: it needs no key of digests, and may use the space that is
// kept in reserve.
func (m mission) ends() bool { return m.destroy || m.spends }

// titled returns the title of a round's plan.
func (m mission) titled(r round) string {
	if r.later {
		return m.title + ", what could be read only now"
	}
	return m.title
}

// pulls returns a phrase for the resources that --target adds to the targets.
func (m mission) pulls() string {
	if m.destroy {
		return "what needs it"
	}
	return "what it needs"
}

// idles returns the text for a plan that does nothing; "" for the default text.
func (m mission) idles(plan *planner.Plan) string {
	if m.idle == nil {
		return ""
	}
	return m.idle(plan)
}

// errTimeout reports that a mission's own deadline has passed.
var errTimeout = errors.New("the time that --timeout gives is up")

// carryOut takes the run lock, plans, asks, applies and tells how it went.
func (a *app) carryOut(ctx context.Context, p *project, m mission) (err error) {
	a.stopWaiting() // a slow reader must not delay a run that holds the lock
	m.unasked = m.unasked || m.file == "" && m.apply.approved
	owner := state.Owner{
		Command: "vmctl " + m.command, Wait: m.apply.wait(p.config.Settings),
		Waiting: func(h state.Holder) { a.waiting(h, m.apply.wait(p.config.Settings)) },
	}
	if m.ends() {
		owner.FreeSpace = p.folder.FreeReserve
	}
	journal, err := p.store.Open(ctx, owner)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	a.applied.Store(p)
	a.log().Info("run lock taken", slog.String("dir", p.dir))
	if err := errors.Join(p.busy().Tidy(ctx), p.tidy(ctx), a.reconcileJobs(ctx, p, m.command)); err != nil {
		return err
	}
	snapshot := journal.Snapshot()
	a.notes(snapshot)
	var moves []state.Entry
	if !m.recorded {
		moves = planner.Moves(p.config, snapshot)
	}
	snapshot = snapshot.With(moves...)
	o, err := m.options(snapshot)
	if err != nil {
		return err
	}
	if err := a.chooseDataDirID(p); err != nil {
		return err
	}
	if p.keyErr != nil && !m.ends() {
		return fmt.Errorf("%s: nothing was started: %w", m.command, p.keyErr)
	}
	if p.key.IsZero() && p.keyErr == nil { // the apply writes it down
		if p.key, err = state.NewDigestKey(a.env.Rand); err != nil {
			return err
		}
	}
	o.Destroy, o.Project, o.DigestKey = m.destroy, p.owner, p.key
	return a.rounds(ctx, p, m, round{journal: journal, snapshot: snapshot, options: o, moves: moves})
}

// chooseDataDirID chooses an ID for a data directory that has none yet: the IDs of planned objects depend
// on it. An apply writes it down.
func (a *app) chooseDataDirID(p *project) error {
	written, err := p.folder.DataDirID() // another run may have been faster
	if err != nil {
		return err
	}
	if p.owner.DataDirID = cmp.Or(written, p.owner.DataDirID); p.owner.DataDirID == "" {
		p.owner.DataDirID, err = newID(a.env.Rand)
	}
	return err
}

// makeDigestKey makes the key of digests, if the data directory has none yet.
func (a *app) makeDigestKey(p *project) (err error) {
	p.key, err = p.folder.MakeDigestKey(a.env.Rand)
	return err
}

func (a *app) waiting(h state.Holder, limit time.Duration) {
	view.Note(a.errScreen(), fmt.Sprintf("Waiting for at most %s: %s.", view.Limit(limit), view.HolderText(h)))
}

func (a *app) showPlan(p *project, m mission, r round, plan *planner.Plan) {
	plan = r.numbered(plan)
	doc := a.planDocument(p, m, plan, r.snapshot)
	if a.global.json {
		a.line(view.PlanEvent{FormatVersion: view.FormatVersion, Type: "plan", Plan: doc})
		return
	}
	if r.later {
		view.Note(a.screen(), "")
	}
	view.Plan(a.screen(), plan, view.PlanOptions{
		Targets: m.plan.targets, Pulls: m.pulls(), Warnings: doc.Warnings, Title: m.titled(r), Picked: m.picks, Verbose: m.plan.verbose, Idle: m.idles(plan), Providers: p.config.Providers,
		Offer: view.Offer{Running: true, Later: r.later, Apply: a.offer(m, plan)}, Own: a.ownFlags(m.plan), Outputs: doc.Outputs,
	})
}

// forbidden returns the error for a plan with blocked changes, of which nothing was started.
func (a *app) forbidden(m mission, r round, plan *planner.Plan) error {
	nothing := "nothing"
	if r.later {
		nothing = "nothing more"
	}
	e := newProblem(classRefused, "blocked", fmt.Sprintf("%s: %s was started: %s", m.command, nothing, view.Obstacles(plan.Summary)))
	e.shown = true
	for _, c := range plan.Changes {
		if c.Blocked == nil {
			continue
		}
		e.Seen = append(e.Seen, c.Address.String()+": "+c.Blocked.Error())
		e.Next = append(e.Next, a.ownFlags(m.plan).Advice(c.Blocked.Next)...)
	}
	if len(plan.Steps) > 0 {
		e.Next = append(e.Next, "to carry out the rest: "+a.offer(m, plan))
	}
	return e
}
