package executor

import (
	"context"
	"errors"
	"maps"
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
		records:  map[spec.Address]state.Record{},
		values:   map[spec.Address]cty.Value{},
		states:   make([]stepState, len(r.Plan.Steps)),
		lowered:  map[int]bool{},
		wants:    map[int]cty.Value{},
		failures: map[int]bool{},
		gates:    map[int]func() error{},
		steps:    map[int][]int{},
		renamed:  map[providers.ID]providers.ID{},
		broken:   map[spec.Address]bool{},
	}
	for a, record := range r.Journal.Snapshot().Records {
		x.remember(a, record)
	}
	for i, s := range r.Plan.Steps {
		x.steps[s.Change] = append(x.steps[s.Change], i)
	}
	if err := x.catchUp(ctx); err != nil {
		return x.summary(), err
	}
	x.condition = x.conditions()
	x.expectations()
	err := x.run(ctx)
	x.open(func(int) bool { return true })
	return x.summary(), errors.Join(append([]error{err}, x.untidy...)...)
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
	waits   bool         // gate: nothing yet, those inside are waited for from now on
	waited  bool         // gate: those inside were waited for
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
	values   map[spec.Address]cty.Value // of the records
	states   []stepState
	ends     []StepResult
	wants    map[int]cty.Value             // what each begun step was to make, wholly known
	lowered  map[int]bool                  // changes that took their object down and have to bring it up
	failures map[int]bool                  // changes with a contractual failure
	broken   map[spec.Address]bool         // blocks of which one that takes turns has failed
	renamed  map[providers.ID]providers.ID // what steps said that objects are called from then on
	halted   bool
	active   int

	interrupted bool // it was said that the context has ended

	condition   condition
	steps       map[int][]int        // of each change
	first       int                  // no step before this one can still begin
	closing     int                  // VMs that are being closed
	patient     int                  // VMs that will be closed once those inside have left
	gates       map[int]func() error // of each change that has closed its VM: what opens it
	stopWaiting func()               // ends every wait for those inside
	untidy      []error
}

// remember is how a record changes.
func (x *execution) remember(a spec.Address, r state.Record) {
	x.records[a], x.values[a] = r, r.Values
}

// forget is how a record goes.
func (x *execution) forget(a spec.Address) {
	delete(x.records, a)
	delete(x.values, a)
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
			x.remember(c.Address, r)
		}
	}
}

func (x *execution) run(ctx context.Context) error {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	x.stopWaiting = cancel
	for {
		if ctx.Err() != nil && (x.unfinished() || x.active > 0) {
			x.interrupt(ctx)
		}
		x.leaveOut()
		if err := x.begin(ctx, x.ready(waits)); err != nil {
			return errors.Join(err, x.drain(ctx))
		}
		if x.active+x.closing+x.patient == 0 {
			return nil
		}
		if err := x.end(ctx, x.collect(ctx)); err != nil {
			return errors.Join(err, x.drain(ctx))
		}
		x.open(x.over)
	}
}

// ready lists the steps that can begin now: first those of changes that keep
// others out of a VM, so that they do so no longer than they must. It begins to
// close the VM that another step would take down: that can begin then.
func (x *execution) ready(ctx context.Context) []int {
	var all []int
	full := func() bool { return x.active+x.closing+len(all) >= x.limit() }
	can := func(i int) bool { return x.states[i] == waiting && x.free(i) && x.may(x.Plan.Steps[i].Change) }
	for _, change := range slices.Sorted(maps.Keys(x.gates)) {
		for _, i := range x.steps[change] {
			if !full() && can(i) {
				all = append(all, i)
			}
		}
	}
	for x.first < len(x.states) && (x.states[x.first] == ended || x.states[x.first] == failed) {
		x.first++
	}
	for i := x.first; i < len(x.states) && !full(); i++ {
		_, kept := x.gates[x.Plan.Steps[i].Change]
		switch {
		case kept || !can(i):
		case x.takesDown(i):
			x.close(ctx, i)
		default:
			all = append(all, i)
		}
	}
	slices.Sort(all)
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

// may reports whether a change can go on: after a halt, or after another failed
// that it takes turns with, only one that has begun with its turn and taken its
// object down, to bring it up again.
func (x *execution) may(change int) bool {
	if x.failures[change] {
		return false
	}
	return !x.halted && !x.broken[x.Plan.Changes[change].Turn] || x.lowered[change]
}

// unfinished reports whether there is a step that was not begun.
func (x *execution) unfinished() bool {
	return slices.ContainsFunc(x.states, func(s stepState) bool { return s == waiting || s == closing })
}

// rises reports whether a change still brings its object up.
func (x *execution) rises(change int) bool {
	return slices.ContainsFunc(x.steps[change], func(i int) bool { return x.Plan.Steps[i].Phase == providers.PhaseUp })
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

var errInterrupted = errors.New("interrupted")

func (x *execution) emit(e Event) {
	x.watching.Lock()
	defer x.watching.Unlock()
	e.At = x.Now()
	x.Watch(e)
}
