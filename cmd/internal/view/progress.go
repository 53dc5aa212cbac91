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

// Progress tells people what an apply is doing, a line per event. Its methods
// may be called from several goroutines.
type Progress struct {
	Screen Screen
	// Silence is how long a step may run without a line before Tick says that
	// it still does. 0: Tick says nothing.
	Silence time.Duration

	mu      sync.Mutex
	running map[int]running
}

type running struct {
	step     spec.Address
	doing    string
	begun    time.Time
	said     time.Time
	deadline time.Duration
}

// Watch shows one event.
func (v *Progress) Watch(e executor.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := &page{screen: v.Screen}
	words := wordsOf(e.Step.Op)
	who := e.Step.Address.String() + ":"
	switch e.Kind {
	case executor.StepStarted:
		v.begin(e, words)
		p.put(0, 2, in(bold, who), txt(" "+words.doing), in(dim, deadline(e.Deadline)))
	case executor.StepProgress:
		v.said(e.Step.ID, e.At)
		p.put(0, 2, in(bold, who), txt(" "+e.Text))
	case executor.StepDone:
		delete(v.running, e.Step.ID)
		p.put(0, 2, in(bold, who), txt(" "), in(green, words.done), txt(ended(e)))
		for _, line := range e.Evidence {
			p.put(2, 4, in(dim, line))
		}
	case executor.StepFailed, executor.StepWarned:
		delete(v.running, e.Step.ID)
		p.failed(e)
	case executor.Halted:
		p.put(0, 2, in(red, "Stopping:"), txt(" "+e.Text))
	default:
		panic("no line for event " + string(e.Kind))
	}
	p.flush()
}

func (v *Progress) begin(e executor.Event, w opWords) {
	if v.running == nil {
		v.running = map[int]running{}
	}
	v.running[e.Step.ID] = running{step: e.Step.Address, doing: w.doing, begun: e.At, said: e.At, deadline: e.Deadline}
}

func (v *Progress) said(id int, at time.Time) {
	if r, ok := v.running[id]; ok {
		r.said = at
		v.running[id] = r
	}
}

// Tick says of every step that has been silent for too long that it still runs,
// for how long, and for how long it may.
func (v *Progress) Tick(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Silence == 0 {
		return
	}
	p := &page{screen: v.Screen}
	for _, id := range slices.Sorted(maps.Keys(v.running)) {
		r := v.running[id]
		if now.Sub(r.said) < v.Silence {
			continue
		}
		v.said(id, now)
		text := " still " + r.doing + ", for " + elapsed(now.Sub(r.begun))
		if r.deadline > 0 {
			text += " of at most " + Limit(r.deadline)
		}
		p.put(0, 2, in(bold, r.step.String()+":"), txt(text))
	}
	p.flush()
}

func (p *page) failed(e executor.Event) {
	word, style := "failed after "+elapsed(e.Elapsed), red
	if e.Kind == executor.StepWarned {
		word, style = "gave a warning", yellow
	}
	p.put(0, 2, in(bold, e.Step.Address.String()+":"), txt(" "+e.Step.Op+" "), in(style, word), txt(reason(e.Failure)))
}

func reason(f *providers.Failure) string {
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

// ended tells how a step ended, as far as that is not a matter of course.
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
	default:
		return text + " (" + strings.ReplaceAll(string(e.How), "_", " ") + ")"
	}
}

// elapsed writes how long something took: tenths of seconds below ten seconds.
func elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Limit writes a deadline as a spec would.
func Limit(d time.Duration) string {
	if d%time.Second != 0 {
		return d.String()
	}
	return spec.FormatDuration(int64(d / time.Second))
}
