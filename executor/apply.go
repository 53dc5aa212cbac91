package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Run is one apply.
type Run struct {
	Plan    *planner.Plan
	World   *planner.World
	Journal state.Journal
	// Resolve evaluates an address again, with what other addresses have come to.
	Resolve     func(spec.Address, map[spec.Address]cty.Value) (spec.Resource, error)
	Gate        Gate   // nil: nobody is ever inside a VM
	ID          string // names the run in the journal
	Parallelism int    // steps at a time; 0: 10
	KeepGoing   bool   // a failure stops what depends on it, not the rest
	Now         func() time.Time
	Watch       func(Event) // called by one goroutine at a time
}

// Apply carries out a plan (DESIGN.md, rules 12 to 16). The Summary says how
// each step ended, also with an error; an error means that the journal could not
// be written, after which nothing more was begun, or that something was left
// untidy after all was done.
func Apply(ctx context.Context, r Run) (Summary, error) {
	x := &execution{
		Run:      r,
		results:  make(chan outcome),
		expect:   map[spec.Address]string{},
		records:  r.Journal.Snapshot().Records,
		states:   make([]stepState, len(r.Plan.Steps)),
		lowered:  map[int]bool{},
		wants:    map[int]cty.Value{},
		failures: map[int]bool{},
		gates:    map[int]func() error{},
	}
	x.expectations()
	err := x.run(ctx)
	x.open(func(int) bool { return true })
	return x.summary(ctx), errors.Join(append([]error{err}, x.untidy...)...)
}

type stepState int

const (
	waiting stepState = iota
	closing           // of the VM that it takes down
	running
	ended // well, or with a diagnostic failure
	failed
)

type outcome struct {
	step    int
	result  providers.Result
	failure *providers.Failure
	elapsed time.Duration
	gate    bool         // of closing the VM that the step takes down
	open    func() error // gate: opens it again; nil: it was not closed
}

// execution is one goroutine's view of an apply. The steps' own goroutines send
// outcomes and nothing else.
type execution struct {
	Run
	watching sync.Mutex
	results  chan outcome
	expect   map[spec.Address]string // fingerprint of each object as the next step will find it
	records  map[spec.Address]state.Record
	states   []stepState
	ends     []StepResult
	wants    map[int]cty.Value // what each begun step was to make, wholly known
	lowered  map[int]bool      // changes that took their object down and have to bring it up
	failures map[int]bool      // changes with a contractual failure
	halted   bool
	active   int

	interrupted bool // it was said that the context has ended

	closing     int                  // VMs that are being closed
	gates       map[int]func() error // of each change that has closed its VM: what opens it
	stopWaiting func()               // ends every wait for those inside
	untidy      []error
}

// expectations takes what the plan saw as what the first steps will find, and
// lets the records begin with it.
func (x *execution) expectations() {
	for i := range x.Plan.Changes {
		c := &x.Plan.Changes[i]
		if c.Object == nil {
			continue
		}
		x.expect[c.Address] = c.Object.Fingerprint
		if r, ok := x.records[c.Address]; ok && c.Object.Running != nil {
			r.Values = withAttribute(r.Values, "running", cty.BoolVal(*c.Object.Running))
			r.Ready = r.Ready && *c.Object.Running
			x.records[c.Address] = r
		}
	}
}

func (x *execution) run(ctx context.Context) error {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	x.stopWaiting = cancel
	for {
		if ctx.Err() != nil {
			x.interrupt(ctx)
		}
		if err := x.begin(ctx, x.ready(waits)); err != nil {
			return errors.Join(err, x.drain(ctx))
		}
		if x.active+x.closing == 0 {
			return nil
		}
		if err := x.end(ctx, x.collect(ctx)); err != nil {
			return errors.Join(err, x.drain(ctx))
		}
		x.open(x.over)
	}
}

// ready lists the steps that can begin now. It begins to close the VM that
// another would take down: that can begin then.
func (x *execution) ready(ctx context.Context) []int {
	var all []int
	for i := range x.Plan.Steps {
		if x.active+len(all) >= x.limit() {
			break
		}
		switch {
		case x.states[i] != waiting || !x.free(i) || !x.may(x.Plan.Steps[i].Change):
		case !x.closed(i):
			x.close(ctx, i)
		default:
			all = append(all, i)
		}
	}
	return all
}

func (x *execution) limit() int {
	if x.Parallelism <= 0 {
		return 10
	}
	return x.Parallelism
}

func (x *execution) free(step int) bool {
	for _, before := range x.Plan.Steps[step].After {
		if x.states[before] != ended {
			return false
		}
	}
	return true
}

// may reports whether a change can go on: after a halt, only one that has taken
// its object down, to bring it up again.
func (x *execution) may(change int) bool {
	if x.failures[change] {
		return false
	}
	return !x.halted || x.lowered[change]
}

// rises reports whether a change still brings its object up.
func (x *execution) rises(change int) bool {
	return slices.ContainsFunc(x.Plan.Steps, func(s planner.Step) bool {
		return s.Change == change && s.Phase == providers.PhaseUp
	})
}

// interrupt halts because ctx has ended: it was cancelled, or its time is up.
func (x *execution) interrupt(ctx context.Context) {
	if x.interrupted {
		return
	}
	why := "interrupted"
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		why = cause.Error()
	}
	x.halted, x.interrupted = true, true
	x.stopWaiting()
	x.emit(Event{Kind: Halted, Text: why + ": no further change begins", Interrupted: true})
}

func (x *execution) halt(why string) {
	if x.halted {
		return
	}
	x.halted = true
	x.stopWaiting()
	x.emit(Event{Kind: Halted, Text: why})
}

// begin makes the intent of the steps durable, and then starts them.
func (x *execution) begin(ctx context.Context, steps []int) error {
	if len(steps) == 0 {
		return nil
	}
	var entries []state.Entry
	for _, i := range steps {
		entry := x.entry(state.Begin, i)
		if x.Plan.Steps[i].Phase == providers.PhaseMake {
			reserved := x.reservation(i)
			entry.Put = &reserved
			x.records[entry.Address] = reserved
		}
		entries = append(entries, entry)
	}
	if err := x.Journal.Append(context.WithoutCancel(ctx), entries...); err != nil {
		return fmt.Errorf("write down what is about to be done: %w", err)
	}
	for _, i := range steps {
		x.states[i] = running
		x.active++
		step := x.Plan.Steps[i]
		x.emit(Event{Kind: StepStarted, Step: step, Deadline: step.Timeout})
		work, err := x.work(i)
		x.wants[i] = work.Want
		go func() {
			began := x.Now()
			result, failure := x.do(ctx, step, work, err)
			x.results <- outcome{step: i, result: result, failure: failure, elapsed: x.Now().Sub(began)}
		}()
	}
	return nil
}

// work joins a step with what only apply time knows.
func (x *execution) work(i int) (providers.Work, error) {
	step := x.Plan.Steps[i]
	change := &x.Plan.Changes[step.Change]
	w := providers.Work{
		Step: step.Step, Expect: x.expect[step.Address], Prior: change.Prior, Want: change.Change.Want,
		Policy: change.Policy, Generation: change.Generation, Replaced: change.Replaced, Was: change.Was,
	}
	if r, ok := x.records[step.Address]; ok {
		w.Prior = r.Values
	}
	if w.Want == cty.NilVal || w.Want.IsWhollyKnown() {
		return w, nil
	}
	if !wants(step) {
		w.Want = cty.NilVal
		return w, nil
	}
	values := map[spec.Address]cty.Value{}
	for a, r := range x.records {
		values[a] = r.Values
	}
	resource, err := x.Resolve(step.Address, values)
	if err != nil {
		return w, err
	}
	if !resource.Want.IsWhollyKnown() {
		return w, errors.New("it refers to an attribute that is still unknown after what it refers to was applied")
	}
	running := change.Change.Want.GetAttr("running")
	w.Want = withAttribute(resource.Want, "running", running)
	return w, nil
}

// wants reports whether a step makes anything of what is wanted; taking an
// object down or away does not, and what is wanted may not be known by then.
func wants(s planner.Step) bool {
	switch s.Phase {
	case providers.PhaseRecover, providers.PhaseRelease, providers.PhaseDown, providers.PhaseRemove:
		return false
	case providers.PhaseReserve, providers.PhaseMake, providers.PhaseChange, providers.PhaseUp,
		providers.PhaseReady, providers.PhaseResume, providers.PhaseTidy:
		return true
	}
	panic("unknown phase " + string(s.Phase))
}

func (x *execution) do(ctx context.Context, step planner.Step, w providers.Work, err error) (providers.Result, *providers.Failure) {
	if err != nil {
		return providers.Result{}, &providers.Failure{Outcome: providers.Failed, Code: "evaluate", Err: err}
	}
	if step.Record {
		return providers.Result{ID: step.Object, How: providers.Done}, nil
	}
	if step.Phase != providers.PhaseReady { // an interrupted wait loses nothing, anything else ends safely first
		ctx = context.WithoutCancel(ctx)
	}
	if step.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, step.Timeout)
		defer cancel()
	}
	system := x.World.System(x.Plan.Changes[step.Change].System)
	log := func(p providers.Progress) { x.emit(Event{Kind: StepProgress, Step: step, Text: p.Text}) }
	result, err := system.Provider.Do(ctx, w, log)
	return result, failureOf(ctx, step, err)
}

var errInterrupted = errors.New("interrupted")

// failureOf gives every error of a step the form of a Failure.
func failureOf(ctx context.Context, step planner.Step, err error) *providers.Failure {
	if err == nil {
		return nil
	}
	var f *providers.Failure
	switch {
	case errors.As(err, &f) && errors.Is(ctx.Err(), context.Canceled):
		return &providers.Failure{Outcome: f.Outcome, Code: "interrupted", Seen: append(slices.Clone(f.Seen), f.Error()), Next: f.Next, Err: errInterrupted}
	case f != nil:
		return f
	case errors.Is(ctx.Err(), context.Canceled):
		return &providers.Failure{Outcome: providers.Failed, Code: "interrupted", Err: errInterrupted}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &providers.Failure{
			Outcome: providers.Timeout, Code: "deadline",
			Err: fmt.Errorf("not done within %s: %w", step.Timeout, err),
		}
	}
	return &providers.Failure{Outcome: providers.Failed, Code: "internal", Err: err}
}

// collect waits for a step to end, and takes every other that has. That ctx has
// ended is said at once.
func (x *execution) collect(ctx context.Context) []outcome {
	var all []outcome
	select {
	case o := <-x.results:
		all = append(all, o)
	case <-ctx.Done():
		x.interrupt(ctx)
		all = append(all, <-x.results)
	}
	for {
		select {
		case o := <-x.results:
			all = append(all, o)
		default:
			return all
		}
	}
}

// end makes outcomes durable, and then acts on them.
func (x *execution) end(ctx context.Context, outcomes []outcome) error {
	slices.SortFunc(outcomes, func(a, b outcome) int { return byAddress(x.Plan.Steps[a.step], x.Plan.Steps[b.step]) })
	var entries []state.Entry
	for _, o := range outcomes {
		if o.gate {
			x.shut(o)
			continue
		}
		x.active--
		entries = append(entries, x.ended(o)...)
	}
	if len(entries) == 0 { // VMs were closed, and nothing else
		x.reportAll(outcomes)
		return nil
	}
	if err := x.Journal.Append(context.WithoutCancel(ctx), entries...); err != nil {
		return fmt.Errorf("write down what was done: %w", err)
	}
	x.reportAll(outcomes)
	return nil
}

func (x *execution) reportAll(outcomes []outcome) {
	for _, o := range outcomes {
		if !o.gate || o.failure != nil {
			x.report(o)
		}
	}
}

// ended takes an outcome into the books, and returns what the journal has to say.
func (x *execution) ended(o outcome) []state.Entry {
	step := x.Plan.Steps[o.step]
	change := &x.Plan.Changes[step.Change]
	x.ends = append(x.ends, StepResult{Step: step, How: o.result.How, Failure: o.failure, Elapsed: o.elapsed})
	if o.failure != nil {
		e := x.entry(state.Failed, o.step)
		e.Error, e.Evidence = o.failure.Error(), o.failure.Seen
		x.states[o.step] = failed
		if step.Class == providers.Diagnostic {
			x.states[o.step] = ended
			return []state.Entry{e}
		}
		x.failures[step.Change] = true
		return []state.Entry{e}
	}
	x.states[o.step] = ended
	switch step.Phase {
	case providers.PhaseDown:
		x.lowered[step.Change] = x.rises(step.Change)
	case providers.PhaseUp:
		delete(x.lowered, step.Change)
	case providers.PhaseRecover, providers.PhaseRelease, providers.PhaseRemove, providers.PhaseReserve,
		providers.PhaseMake, providers.PhaseChange, providers.PhaseReady, providers.PhaseResume, providers.PhaseTidy:
	}
	if !step.Record {
		x.expect[step.Address] = o.result.Fingerprint
	}
	e := x.entry(state.Done, o.step)
	e.How, e.Evidence = string(o.result.How), o.result.Evidence
	record, keep := x.record(step, change, o.result)
	switch {
	case keep:
		e.Put = &record
		x.records[step.Address] = record
	case o.result.Gone || step.Op == planner.OpForget:
		e.Drop = true
		delete(x.records, step.Address)
	}
	entries := []state.Entry{e}
	if step.Op == planner.OpSettle {
		note := x.entry(state.Note, o.step)
		note.Op = state.Settled
		entries = append(entries, note)
	}
	return entries
}

// report tells the watcher of an outcome, and halts after a failure that matters.
func (x *execution) report(o outcome) {
	step := x.Plan.Steps[o.step]
	event := Event{
		Kind: StepDone, Step: step, How: o.result.How, Evidence: o.result.Evidence,
		Failure: o.failure, Elapsed: o.elapsed,
	}
	switch {
	case o.failure == nil:
	case step.Class == providers.Diagnostic:
		event.Kind = StepWarned
	default:
		event.Kind = StepFailed
	}
	x.emit(event)
	if event.Kind == StepFailed && !x.KeepGoing {
		x.halt(fmt.Sprintf("%s failed: no further change begins", step.Address))
	}
}

// drain waits for the running steps after the journal has failed. What they came
// to is reported, and the next plan finds it in the world.
func (x *execution) drain(ctx context.Context) error {
	x.halt("the journal cannot be written: no further step begins")
	var errs []error
	for x.active+x.closing > 0 {
		if err := x.end(ctx, x.collect(ctx)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (x *execution) entry(kind state.EntryKind, i int) state.Entry {
	step := x.Plan.Steps[i]
	e := state.Entry{
		Run: x.ID, At: x.Now().UTC(), Kind: kind, Step: i, Op: step.Op, Address: step.Address,
		ID: string(step.Object), Name: step.Name,
	}
	if kind == state.Begin {
		e.Leaves = step.Leaves
	}
	return e
}

func (x *execution) emit(e Event) {
	x.watching.Lock()
	defer x.watching.Unlock()
	e.At = x.Now()
	x.Watch(e)
}

func (x *execution) summary(ctx context.Context) Summary {
	s := Summary{Interrupted: ctx.Err() != nil}
	slices.SortFunc(x.ends, func(a, b StepResult) int { return byAddress(a.Step, b.Step) })
	for _, e := range x.ends {
		switch {
		case e.Failure == nil:
			s.Done = append(s.Done, e)
		case e.Step.Class == providers.Diagnostic:
			s.Warned = append(s.Warned, e)
		default:
			s.Failed = append(s.Failed, e)
		}
	}
	for i, st := range x.states {
		if st == waiting {
			s.NotRun = append(s.NotRun, x.Plan.Steps[i])
		}
	}
	slices.SortFunc(s.NotRun, byAddress)
	for i := range x.Plan.Changes {
		if x.lowered[i] {
			s.Down = append(s.Down, x.Plan.Changes[i].Address)
		}
	}
	return s
}

// byAddress orders steps by address, and those of one address as the plan does.
func byAddress(a, b planner.Step) int {
	return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.ID, b.ID))
}
