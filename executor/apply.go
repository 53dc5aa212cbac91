package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Run describes one apply.
type Run struct {
	Plan    *planner.Plan
	World   *planner.World
	Journal state.Journal
	// Resolve evaluates an address again, with the values that other addresses have by now.
	Resolve func(spec.Address, map[spec.Address]cty.Value) (spec.Resource, error)
	// Conditions evaluates the preconditions and postconditions of an address, with the values that
	// addresses have by now. nil: there are none.
	Conditions func(spec.Address, map[spec.Address]cty.Value) []spec.Check
	// DigestKey makes the digests of sensitive values in the records. A digest without a key is "".
	DigestKey   state.DigestKey
	Gate        Gate   // nil: nobody is ever inside a VM
	ID          string // names the run in the journal
	Parallelism int    // steps at a time; 0: 10
	KeepGoing   bool   // a failure stops only the changes that depend on it
	KeepLogs    bool   // the logs of what is removed are kept
	Now         func() time.Time
	Watch       func(Event) // called by one goroutine at a time
}

// Apply carries out a plan (DESIGN.md, rules 12 to 16). The Summary lists the outcome of each
// step, also if Apply fails. It fails if the journal cannot be written, after which no further
// step begins, and if a VM cannot be opened to other commands at the end.
func Apply(ctx context.Context, r Run) (Summary, error) {
	x := &execution{
		Run:         r,
		results:     make(chan outcome),
		expect:      map[spec.Address]string{},
		records:     map[spec.Address]state.Record{},
		values:      map[spec.Address]cty.Value{},
		states:      make([]stepState, len(r.Plan.Steps)),
		takenDown:   map[int]bool{},
		wants:       map[int]cty.Value{},
		failures:    map[int]bool{},
		met:         map[int]bool{},
		gates:       map[int]func() error{},
		steps:       map[int][]int{},
		watches:     map[spec.Address]*condition.Watch{},
		renamed:     map[providers.ID]providers.ID{},
		brokenTurns: map[spec.Address]bool{},
		replaced:    map[int]state.Record{},
	}
	for a, record := range r.Journal.Snapshot().Records {
		x.remember(a, record)
	}
	for i, s := range r.Plan.Steps {
		x.steps[s.Change] = append(x.steps[s.Change], i)
	}
	if err := x.refreshRecords(ctx); err != nil {
		return x.summary(), err
	}
	x.conditional = x.conditionals()
	x.queue = newQueue(r.Plan.Steps)
	x.open(x.queue.first()...)
	x.expectPlanned()
	err := x.run(ctx)
	x.reopen(func(int) bool { return true })
	return x.summary(), errors.Join(append([]error{err}, x.reopenErrors...)...)
}

type stepState int

const (
	waiting stepState = iota
	closing           // the VM that it takes down is being closed
	running
	ended // well, or with a diagnostic failure
	failed
)

type outcome struct {
	step    int
	result  providers.Result
	failure *providers.Problem
	elapsed time.Duration
	unmet   bool         // the step ended, and a postcondition of its change does not hold
	gate    bool         // this is about closing the VM that the step takes down
	waits   bool         // gate: not closed yet, the wait for its holders begins
	waited  bool         // gate: there was a wait for its holders
	open    func() error // gate: opens it again; nil: it was not closed

	report *condition.Report     // the step runs on, and reports a condition; nil: none
	news   []condition.Condition // the conditions that the outcome has changed
}

// execution is the state of one apply, used by one goroutine. The goroutines of the steps send
// outcomes and events, and change nothing of it.
type execution struct {
	Run
	watching    sync.Mutex
	results     chan outcome
	expect      map[spec.Address]string // fingerprint of each object as the next step will find it
	records     map[spec.Address]state.Record
	values      map[spec.Address]cty.Value // of the records
	states      []stepState
	ends        []StepResult
	wants       map[int]cty.Value                 // the wanted values of each begun step, wholly known
	takenDown   map[int]bool                      // changes that took their object down and have to bring it up
	failures    map[int]bool                      // changes with a contractual failure
	met         map[int]bool                      // changes whose preconditions hold
	brokenTurns map[spec.Address]bool             // blocks with a failure among the instances that take turns
	renamed     map[providers.ID]providers.ID     // the new IDs that steps gave to objects
	watches     map[spec.Address]*condition.Watch // the conditions that were told
	replaced    map[int]state.Record              // the record of the object that each change replaces, until then
	halted      bool
	active      int

	interrupted bool // the end of the context was reported

	unwritten []state.Entry // the results of steps that have ended
	untold    []Event       // events of results that are not written down yet

	conditional  conditionalSteps
	queue        queue
	undecided    []int                // steps that may not be needed, whose dependencies have ended
	steps        map[int][]int        // of each change
	closing      int                  // VMs that are being closed
	awaiting     int                  // VMs that will be closed once their holders have left
	gates        map[int]func() error // opens the VM of each change that has closed it
	stopWaiting  func()               // ends every wait for holders
	reopenErrors []error
}

// remember sets the record of an address.
func (x *execution) remember(a spec.Address, r state.Record) {
	x.records[a], x.values[a] = r, r.Values
}

// forget removes the record of an address.
func (x *execution) forget(a spec.Address) {
	delete(x.records, a)
	delete(x.values, a)
}

// expectPlanned expects the first steps to find the objects that the plan saw, and puts the run
// states of these objects into the records.
func (x *execution) expectPlanned() {
	for i := range x.Plan.Changes {
		c := &x.Plan.Changes[i]
		if c.Object == nil {
			continue
		}
		x.expect[c.Address] = c.Object.Fingerprint
		if r, ok := x.records[c.Address]; ok && c.Object.Running != nil {
			r.Values = withAttribute(r.Values, "running", cty.BoolVal(*c.Object.Running))
			if !*c.Object.Running {
				r = x.stampedAll(r, c, func(string) (condition.Report, bool) { return x.wentOff(i, "it was found off"), true })
			}
			x.remember(c.Address, r)
		}
	}
}

// run takes turns: it gathers the outcomes that have arrived, writes them down together with the begins of the steps that
// can begin now, and then starts these.
func (x *execution) run(ctx context.Context) error {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	x.stopWaiting = cancel
	for {
		if ctx.Err() != nil && (x.unfinished() || x.active > 0) {
			x.interrupt(ctx)
		}
		x.skipUnneeded()
		next := x.ready(waits)
		if err := x.write(ctx, next); err != nil {
			return errors.Join(err, x.drain(ctx))
		}
		x.begin(ctx, next)
		x.reopen(x.isOver)
		if x.active+x.closing+x.awaiting == 0 {
			return nil
		}
		x.end(x.collect(ctx))
	}
}

// write writes down the results of the steps that have ended and the begins of the next steps, in one write of the journal,
// and then tells of the results.
func (x *execution) write(ctx context.Context, next []int) error {
	begins := x.begins(next)
	entries := slices.Concat(x.unwritten, begins)
	var err error
	if len(entries) > 0 {
		err = x.Journal.Append(context.WithoutCancel(ctx), entries...)
	}
	x.tell() // the steps were done, even if that cannot be written down
	if err == nil {
		x.unwritten = nil
		return nil
	}
	x.writeOneByOne(ctx)
	if len(begins) == 0 {
		return fmt.Errorf("write down the ended steps: %w", err)
	}
	return fmt.Errorf("write down the next steps: %w", err)
}

// writeOneByOne writes down as many results as fit on a full disk. It keeps the others for the next write: a step that
// deletes something may make room meanwhile.
func (x *execution) writeOneByOne(ctx context.Context) {
	for len(x.unwritten) > 0 {
		if x.Journal.Append(context.WithoutCancel(ctx), x.unwritten[0]) != nil {
			return
		}
		x.unwritten = x.unwritten[1:]
	}
}

// open adds steps whose dependencies have ended to those that can begin.
func (x *execution) open(steps ...int) {
	x.queue.push(steps...)
	for _, i := range steps {
		if x.conditional.decidingChange(i) >= 0 {
			x.undecided = append(x.undecided, i)
		}
	}
}

// pass ends a step whose dependents can go on.
func (x *execution) pass(step int) {
	x.states[step] = ended
	x.open(x.queue.end(step)...)
}

// ready lists the steps that can begin now. Steps of changes that keep others out of a VM come
// first, so that they do so no longer than they must. If a step would take a VM down, ready
// begins to close that VM: the step can begin after that.
func (x *execution) ready(ctx context.Context) []int {
	var all, later []int
	full := func() bool { return x.active+x.closing+len(all) >= x.limit() }
	for _, change := range slices.Sorted(maps.Keys(x.gates)) {
		for _, i := range x.steps[change] {
			if !full() && x.states[i] == waiting && x.queue.missing[i] == 0 && x.mayBegin(i) {
				all = append(all, i)
			}
		}
	}
	for !full() {
		i, ok := x.queue.pop()
		if !ok {
			break
		}
		change := x.Plan.Steps[i].Change
		_, kept := x.gates[change]
		switch {
		case x.states[i] != waiting || x.failures[change]: // it has begun, or never will
		case kept || !x.mayBegin(i):
			later = append(later, i)
		case x.takesDown(i):
			x.close(ctx, i)
		default:
			all = append(all, i)
		}
	}
	x.queue.push(later...)
	slices.Sort(all)
	return all
}

func (x *execution) limit() int {
	if x.Parallelism <= 0 {
		return 10
	}
	return x.Parallelism
}

// mayRun reports whether a change can go on. After a halt, or after a failure among the changes with
// which it takes turns, it can do so only to bring up the object that it has taken down.
func (x *execution) mayRun(change int) bool {
	if x.failures[change] {
		return false
	}
	return !x.halted && !x.brokenTurns[x.Plan.Changes[change].Turn] || x.takenDown[change]
}

// mayBegin reports whether a step can begin once those that it waits for have ended. After a halt, an object that is up
// again is also waited for, so that what was released inside of it can be resumed.
func (x *execution) mayBegin(i int) bool {
	step := x.Plan.Steps[i]
	if x.mayRun(step.Change) {
		return true
	}
	if x.failures[step.Change] || step.Condition == "" {
		return false
	}
	for inner, down := range x.takenDown {
		if down && slices.Contains(x.Plan.Changes[inner].Around, step.Address) && !x.still(step.Change, providers.PhaseUp) {
			return true
		}
	}
	return false
}

// unfinished reports whether there is a step that was not begun.
func (x *execution) unfinished() bool {
	return slices.ContainsFunc(x.states, func(s stepState) bool { return s == waiting || s == closing })
}

// rises reports whether a change still brings its object up.
func (x *execution) rises(change int) bool {
	return x.still(change, providers.PhaseUp) || x.still(change, providers.PhaseResume)
}

// still reports whether a change has a step of a phase that was not begun.
func (x *execution) still(change int, phase providers.Phase) bool {
	return slices.ContainsFunc(x.steps[change], func(i int) bool { return x.states[i] == waiting && x.Plan.Steps[i].Phase == phase })
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
	x.later(Event{Kind: Halted, Text: why})
}

var errInterrupted = errors.New("interrupted")

// interruptedCode is the code of the failure of a step that ended because of an interrupt.
const interruptedCode = "interrupted"

// later sends an event after the next write of the journal.
func (x *execution) later(e Event) { x.untold = append(x.untold, e) }

// tell sends the events that have waited.
func (x *execution) tell() {
	for _, e := range x.untold {
		x.emit(e)
	}
	x.untold = nil
}

func (x *execution) emit(e Event) {
	x.watching.Lock()
	defer x.watching.Unlock()
	e.At = x.Now()
	x.Watch(e)
}
