package view

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"vmctl/executor"
	"vmctl/providers"
	"vmctl/spec"
)

// Progress shows people the progress of an apply, a line per event. Its methods may be called
// from several goroutines. Its times come from the events and from Tick.
type Progress struct {
	Screen Screen
	// Live receives the lines and the running steps, if a terminal has a region for them.
	// nil: the lines go to Screen, and Tick reports silent steps.
	Live func(lines []byte, now Frame)
	// Silence is the time that a step may run without a line before Tick reports that it
	// still runs. 0: Tick reports nothing.
	Silence time.Duration

	mu      sync.Mutex
	running map[int]running
	now     time.Time
	widest  int // width of the widest address so far
}

type running struct {
	step     spec.Address
	doing    string
	says     string
	begun    time.Time
	said     time.Time
	deadline time.Duration
	inside   bool // it waits for visitors of a VM, until a halt
}

const waitingInside = "waiting for those inside"

// Fit sets the width of the lines to a new width of the screen.
func (v *Progress) Fit(columns int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Screen.Columns = columns
}

// Watch shows one event.
func (v *Progress) Watch(e executor.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = e.At
	p := &page{screen: v.Screen}
	words := wordsOf(e.Step)
	who := e.Step.Address.String() + ":"
	switch e.Kind {
	case executor.StepWaiting:
		v.inside(e)
		p.put(0, 2, in(bold, who), txt(" "+waitingInside), in(dim, deadline(e.Deadline)), txt(": "+e.Text))
	case executor.StepStarted:
		v.begin(e, words)
		p.put(0, 2, in(bold, who), txt(" "+words.Doing), in(dim, deadline(e.Deadline)))
	case executor.StepProgress:
		v.said(e.Step.ID, e.Text)
		p.put(0, 2, in(bold, who), txt(" "+e.Text))
	case executor.ConditionChanged:
		for _, c := range e.Conditions {
			v.said(e.Step.ID, conditionLine(c))
			p.put(0, 2, in(bold, who), txt(" "+conditionLine(c)))
		}
	case executor.StepDone:
		delete(v.running, e.Step.ID)
		if e.How == providers.NotNeeded {
			p.put(0, 2, in(bold, who), txt(" not needed: "+e.Step.Op))
		} else {
			p.put(0, 2, in(bold, who), txt(" "), in(green, words.Done), txt(ended(e)))
		}
		for _, line := range e.Evidence {
			p.put(2, 4, in(dim, line))
		}
	case executor.StepFailed, executor.StepWarned:
		delete(v.running, e.Step.ID)
		p.failed(e)
	case executor.Halted:
		p.put(0, 2, in(red, "Stopping:"), txt(" "+e.Text))
		maps.DeleteFunc(v.running, func(_ int, r running) bool { return r.inside })
		v.waiting(p, e)
	default:
		panic("no line for event " + string(e.Kind))
	}
	v.show(p)
}

// Halt shows on another screen that no more steps begin, and which ones run on. It is for
// callers that show the events in another way.
func (v *Progress) Halt(s Screen, e executor.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = e.At
	p := &page{screen: s}
	p.put(0, 2, in(red, "Stopping:"), txt(" "+e.Text))
	v.waiting(p, e)
	p.flush()
}

// listed is the number of steps that waiting names.
const listed = 10

// waiting lists the steps that run on after a halt, and how to leave without them.
func (v *Progress) waiting(p *page, e executor.Event) {
	for i, r := range v.byAddress() {
		if i == listed {
			p.put(2, 4, txt("and for "+plural(len(v.running)-listed, "step")+" more"))
			break
		}
		p.put(2, 4, txt("waiting for "), in(bold, r.step.String()+":"), txt(" "+r.doing+r.time(v.now)))
	}
	if e.Interrupted && len(v.running) > 0 {
		p.put(2, 4, txt("A second Ctrl-C leaves at once; the next plan then says what was interrupted."))
	}
}

// show writes lines, and draws the running steps.
func (v *Progress) show(p *page) {
	if v.Live == nil {
		p.flush()
		return
	}
	v.Live([]byte(p.text.String()), v.frame())
}

func (v *Progress) frame() Frame {
	f := Frame{address: v.widest}
	for _, r := range v.byAddress() {
		f.steps = append(f.steps, runningStep{
			address: Text(r.step.String()), doing: Text(r.doing), says: Text(r.says),
			elapsed: max(v.now.Sub(r.begun), 0), deadline: r.deadline,
		})
	}
	return f
}

// byAddress lists the running steps by address, and the steps of one address in their order.
func (v *Progress) byAddress() []running {
	var all []running
	for _, id := range slices.Sorted(maps.Keys(v.running)) {
		all = append(all, v.running[id])
	}
	slices.SortStableFunc(all, func(a, b running) int { return a.step.Compare(b.step) })
	return all
}

func (v *Progress) begin(e executor.Event, w providers.Words) {
	if v.running == nil {
		v.running = map[int]running{}
	}
	v.widest = max(v.widest, Width(Text(e.Step.Address.String())))
	v.running[e.Step.ID] = running{step: e.Step.Address, doing: w.Doing, begun: e.At, said: e.At, deadline: e.Deadline}
}

// inside begins a step's wait for the visitors of a VM, or updates their names.
func (v *Progress) inside(e executor.Event) {
	if !v.running[e.Step.ID].inside {
		v.begin(e, providers.Words{Doing: waitingInside})
	}
	r := v.running[e.Step.ID]
	r.inside = true
	v.running[e.Step.ID] = r
	v.said(e.Step.ID, e.Text)
}

// said records the last text of a step. "" only ends its silence: vmctl itself reported that
// the step runs.
func (v *Progress) said(id int, text string) {
	r, ok := v.running[id]
	if !ok {
		return
	}
	r.said = v.now
	if text != "" {
		r.says = text
	}
	v.running[id] = r
}

// Tick sets the time. It draws the running steps anew; without a region it reports every step
// that has been silent for too long, with its time and its deadline.
func (v *Progress) Tick(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = now
	p := &page{screen: v.Screen}
	if v.Live != nil {
		v.show(p)
		return
	}
	if v.Silence == 0 {
		return
	}
	for _, id := range v.silent() {
		r := v.running[id]
		v.said(id, "")
		p.put(0, 2, in(bold, r.step.String()+":"), txt(" still "+r.doing+r.time(now)))
	}
	p.flush()
}

// silent lists the steps that have had no line for too long, by address.
func (v *Progress) silent() []int {
	var all []int
	for _, id := range slices.Sorted(maps.Keys(v.running)) {
		if v.now.Sub(v.running[id].said) >= v.Silence {
			all = append(all, id)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int { return v.running[a].step.Compare(v.running[b].step) })
	return all
}

// End erases the running steps; the lines stay.
func (v *Progress) End() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Live != nil {
		v.Live(nil, Frame{})
	}
}

// time returns the time that a step has run, and its deadline.
func (r running) time(now time.Time) string {
	text := ", for " + elapsed(now.Sub(r.begun))
	if r.deadline > 0 {
		text += " of at most " + Limit(r.deadline)
	}
	return text
}

func (p *page) failed(e executor.Event) {
	word, style := "failed after "+elapsed(e.Elapsed), red
	if e.Kind == executor.StepWarned {
		word, style = "gave a warning", yellow
	}
	p.put(0, 2, in(bold, e.Step.Address.String()+":"), txt(" "+e.Step.Op+" "), in(style, word), txt(reason(e.Failure)))
}

func reason(f *providers.Problem) string {
	if f == nil {
		return ""
	}
	return ": " + f.Error()
}

func deadline(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return " (at most " + Limit(d) + ")"
}

// ended returns the duration of a step, and its outcome if that is not the usual one.
func ended(e executor.Event) string {
	text := " in " + elapsed(e.Elapsed)
	switch e.How {
	case providers.Done, "":
		return text
	case providers.AlreadyTrue:
		return text + " (was so already)"
	case providers.AlreadyGone:
		return text + " (was gone already)"
	case providers.Graceful, providers.Forced:
		return text + " (" + string(e.How) + ")"
	case providers.NotNeeded:
		return ""
	default:
		return text + " (" + strings.ReplaceAll(string(e.How), "_", " ") + ")"
	}
}

// elapsed formats a duration: with tenths of seconds below ten seconds.
func elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Limit formats a deadline as a spec does.
func Limit(d time.Duration) string {
	if d%time.Second != 0 {
		return d.String()
	}
	return spec.FormatDuration(int64(d / time.Second))
}
