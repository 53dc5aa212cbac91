package search

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"vmctl/executor"
	"vmctl/internal/mask"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/secret"
	"vmctl/spec"
	"vmctl/state"
)

// Host is a system that the search works on.
type Host struct {
	Type   providers.Type
	Inside map[spec.Kind]providers.Type // of the kinds inside of its VMs
	// Block returns the provider block, in HCL, with some faults.
	Block func([]Fault) string
	// Faults lists the faults that can strike. Each strikes once.
	Faults []Fault
	// Make makes a VM of a name in a folder, as others would: with one CPU, off.
	Make func(dir, name string) error
	// ExternalChanges lists the changes that other programs can make to the world in a folder.
	ExternalChanges []ExternalChange
	Folders         func(dir string) providers.Settings // of a provider whose world is in dir
	Cases           int                                 // by default; 0: as many as rapid has
	Dir             string                              // where worlds are made, in memory; "": /dev/shm
	Survey          bool                                // broken laws are counted, and end nothing
	// Unmanaged returns the objects that are not vmctl's, with all that there is of them: objects
	// that ExternalChanges made, and unmarked objects that vmctl made, if letGo has their IDs.
	Unmanaged func(dir string, letGo map[string]bool) (map[string]string, error)
	// Work returns the work at the desks of the VMs in a folder, each with the name of the desk: that in which vmctl must see it, or
	// all that there is. nil: there are no desks.
	Work func(dir string, seen bool) (map[string]string, error)
	// AtWork leaves work at one of the desks. pick returns a number below a limit. It returns a description of the change, "" if
	// there is no desk.
	AtWork func(dir string, pick func(limit int) int) (string, error)
	// Break is the guard that is broken on purpose, to see the search find it. "": none.
	Break Guard

	// For a system that is not in the folder: Reset makes it empty, Strike lets it fail in these
	// ways and in no others, and Traces lists all that exists of it, sorted. nil: the folder and
	// the block are the whole system.
	Reset  func(dir string)
	Strike func([]Fault)
	Traces func() []string
}

// Fault is a failure that a provider injects.
type Fault struct{ Op, Kind string }

// ExternalChange changes the world as another program would. pick returns a number below a limit.
// Do returns a description of the change, "" if there was none.
type ExternalChange struct {
	Name string
	Do   func(dir string, pick func(limit int) int) (string, error)
}

// harness runs one case of the search.
type harness struct {
	t         rapid.TB
	draw      *rapid.T // nil: nothing is left to chance
	host      Host
	dir       string
	store     *memoryStore
	model     model
	total     *tally
	faults    []Fault
	keepGoing bool // --keep-going
	atWork    bool // somebody works at a desk once the plan of a run is made
	planAfter int  // after how many events of a run another vmctl plans; negative: never

	plans     int
	looks     int
	strict    bool         // policies that forbid something are drawn, too
	spec      string       // stands in for the model; "": it does not
	faultless bool         // faults have stopped
	loaded    *spec.Config // of text
	text      string
	hidden    bool // the system shows no attribute that may be sensitive
	key       state.DigestKey
	masker    mask.Masker
	halted    bool // the run
	lowered   map[spec.Address]bool
	restored  map[spec.Address]bool // containers that are as they were, because their successors could not be made
	plan      *planner.Plan         // that is carried out
	broken    string                // what broke law 5; "": nothing
	log       []string
	ctx       context.Context //nolint:containedctx // of the whole case
}

func newHarness(ctx context.Context, t rapid.TB, host Host, dir string) *harness {
	if err := os.RemoveAll(filepath.Join(dir, "world")); err != nil {
		t.Fatal(err)
	}
	if host.Reset != nil {
		host.Reset(filepath.Join(dir, "world"))
	}
	key, err := state.NewDigestKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &harness{t: t, host: host, dir: dir, store: newMemory(project.ID, project.Name), model: newModel(), ctx: ctx, planAfter: -1, key: key}
}

func (b *harness) say(format string, args ...any) {
	b.log = append(b.log, fmt.Sprintf(format, args...))
}

// failf reports a broken law, with all that led to it.
func (b *harness) failf(law string, format string, args ...any) {
	b.t.Helper()
	if b.host.Survey {
		panic(broken{law, fmt.Sprintf("law %s: %s\n\n%s", law, fmt.Sprintf(format, args...), strings.Join(b.log, "\n"))})
	}
	b.t.Fatalf("law %s: %s\n%s", law, fmt.Sprintf(format, args...), strings.Join(b.log, "\n"))
}

// broken is a law that was broken.
type broken struct{ law, what string }

func (b *harness) must(err error) {
	b.t.Helper()
	if err != nil {
		b.failf("none", "%v", err)
	}
}

func (b *harness) header() string {
	return fmt.Sprintf("vmctl {\n  project = %q\n  id = %q\n}\n%s", project.Name, project.ID, b.host.Block(b.faults))
}

// load reads the model as vmctl would.
func (b *harness) load() *spec.Config {
	b.t.Helper()
	text := b.model.hcl(b.header())
	if b.spec != "" {
		text = b.header() + b.spec
	}
	if b.loaded != nil && b.text == text {
		return b.loaded
	}
	t := b.host.Type
	c, diags := spec.Load(b.dir, spec.Inputs{
		Supports: func(typ string, kind spec.Kind, path string) bool {
			return supports(b.types().Of(typ, kind, spec.Address{}).Kinds, kind, path)
		},
		ProviderTypes: []string{t.Name}, Version: "0.1.0",
		Source: &spec.Source{Files: map[string]string{"main.vmctl.hcl": text}},
	})
	if diags.HasErrors() {
		b.failf("none", "the search drew a spec with mistakes: %v\n%s", diags, text)
	}
	b.masker.Add(c.Secrets()...)
	b.loaded, b.text = c, text
	return c
}

func supports(kinds map[spec.Kind]map[string]providers.Attribute, kind spec.Kind, path string) bool {
	if path == "" {
		return kinds[kind] != nil
	}
	for {
		if _, ok := kinds[kind][path]; ok {
			return true
		}
		for known := range kinds[kind] {
			if strings.HasPrefix(known, path+".") {
				return true
			}
		}
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			return false
		}
		path = path[:dot]
	}
}

func (b *harness) open(ctx context.Context, o planner.Opening) (providers.Provider, error) {
	s := b.host.Folders(filepath.Join(b.dir, "world"))
	s.Name, s.Attrs, s.Project, s.Files, s.Via, s.Now = o.Ref.Label(), o.Attrs, project, b.dir, o.Via, time.Now
	s.Digest = func(text string) string { return b.key.Text("search", text) }
	p, err := secret.Open(ctx, o.Type, s, &b.masker)
	if b.hidden && err == nil {
		p = secretive{p}
	}
	if b.host.Break != "" && err == nil {
		p = &brokenProvider{Provider: p, guard: b.host.Break, dir: s.Dir, count: &b.looks, faultless: b.faultless}
	}
	return p, err
}

// types returns the types of provider of the search.
func (b *harness) types() providers.Types {
	return providers.Types{Systems: map[string]providers.Type{b.host.Type.Name: b.host.Type}, Inside: b.host.Inside}
}

// options returns the options of a plan that may replace everything.
func (b *harness) options(c *spec.Config) planner.Options {
	all := map[spec.Address]bool{}
	for _, r := range c.Resources {
		all[r.Address] = true
	}
	return planner.Options{
		Types: b.types(), Project: project, Allow: planner.Allow{Replace: all}, DigestKey: b.key,
	}
}

// outcome describes the result of an apply.
type outcome struct {
	blocked map[spec.Address]planner.Cause // the causes
	ok      bool
	killed  bool
	changes int
}

// apply plans and carries out, round by round, as the command does.
func (b *harness) apply(excludes []spec.Address) outcome {
	b.t.Helper()
	c := b.load()
	if b.host.Strike != nil {
		b.host.Strike(b.faults)
		defer b.host.Strike(nil)
	}
	b.halted, b.lowered, b.restored, b.broken = false, map[spec.Address]bool{}, map[spec.Address]bool{}, ""
	j := b.store.open()
	s := j.Snapshot()
	moves := planner.Moves(c, s)
	o := b.options(c)
	o.Scope.Excludes = excludes
	out := outcome{blocked: map[spec.Address]planner.Cause{}, ok: true}
	s = s.With(moves...)
	for round := 0; ; round++ {
		plan, world, err := planner.Make(b.ctx, b.open, c, s, o)
		if err != nil {
			b.failf("1", "no plan: %v", err)
		}
		b.plan = plan
		b.showPlan(plan)
		b.checkPanics(world)
		b.checkPlan(plan, world)
		b.checkDeterministic(plan, c, s, o)
		for _, c := range plan.Changes {
			if c.Action != providers.NoOp && c.Blocked == nil {
				out.changes++
			}
			if c.Blocked != nil {
				out.blocked[c.Address] = c.Blocked.Cause
				out.ok = false
			}
		}
		if out.ok {
			letGo := b.letGo()
			theirs := b.unmanaged(letGo)
			if err := j.Append(b.ctx, plan.Moves(moves)...); errors.Is(err, errKilled) {
				out.killed, out.ok = true, false
				b.must(world.Close())
				break
			}
			moves = nil
			b.goOn()
			work := b.work(true)
			other := b.readConcurrently(c, o, j.Snapshot)
			summary, err := executor.Apply(b.ctx, executor.Run{
				DigestKey: b.key, Plan: plan, World: world, Journal: j, ID: fmt.Sprintf("run%d.%d", b.store.snapshot.Serial, round), Now: time.Now,
				Conditions: c.Conditions,
				KeepGoing:  b.keepGoing || b.host.Break == BreakStop, Parallelism: 1, // or what a fault strikes would be chance
				Watch: func(e executor.Event) {
					b.onEvent(e)
					other.onEvent()
					if e.Failure != nil && e.Failure.Code == "panic" {
						b.failf("1", "%s %s: %v", e.Step.Op, e.Step.Address, e.Failure)
					}
					if e.Kind == executor.StepFailed || e.Kind == executor.StepWarned {
						b.say("  %s %s %s: %v", e.Kind, e.Step.Op, e.Step.Address, e.Failure)
					}
				},
				Resolve: func(a spec.Address, values map[spec.Address]cty.Value) (spec.Resource, error) {
					r, diags := c.Resolve(a, values)
					if diags.HasErrors() {
						return r, diags
					}
					return r, nil
				},
			})
			out.killed = errors.Is(err, errKilled)
			if err != nil && !out.killed {
				b.failf("none", "apply: %v", err)
			}
			out.ok = err == nil && summary.OK()
			if err == nil {
				b.checkDown(plan, summary)
			}
			b.checkUnmanaged(theirs, letGo)
			b.checkWork(work)
			if other.wrong != nil {
				b.failf("6", "%v", other.wrong)
			}
		}
		b.must(world.Close())
		if !out.ok || len(plan.Deferred) == 0 {
			break
		}
		if len(plan.Steps) == 0 {
			b.failf("1", "what was deferred cannot be read: %v", plan.Deferred)
		}
		o.Rest, s = plan.Deferred, j.Snapshot()
	}
	b.must(j.Close())
	return out
}

// checkPanics fails if a provider panicked while a plan was made.
func (b *harness) checkPanics(world *planner.World) {
	for _, system := range world.Systems() {
		if system.Panic != nil {
			b.failf("1", "%v\n%s", system.Panic, system.Panic.Stack)
		}
	}
}

// leftover is a step, deferral or finding of the plan after an apply.
type leftover struct {
	of     spec.Address
	text   string
	step   string                // its operation and address
	record bool                  // the step changes nothing but a record
	kind   providers.FindingKind // of a finding
	name   string                // of its object
}

// texts prints leftovers, a line each.
func texts(all []leftover) string {
	lines := make([]string, len(all))
	for i, l := range all {
		lines[i] = l.text
	}
	return strings.Join(lines, "\n")
}

// left plans again and returns the leftovers and the causes of blocked changes.
func (b *harness) left() (pending []leftover, blocked map[spec.Address]planner.Cause, world *planner.World) {
	b.t.Helper()
	c := b.load()
	s := b.store.snapshot
	s = s.With(planner.Moves(c, s)...)
	plan, world, err := planner.Make(b.ctx, b.open, c, s, b.options(c))
	if err != nil {
		b.failf("1", "no plan: %v", err)
	}
	blocked = map[spec.Address]planner.Cause{}
	idle := map[spec.Address]bool{}
	for _, c := range plan.Changes {
		if c.Blocked != nil {
			blocked[c.Address] = c.Blocked.Cause
		}
		idle[c.Address] = c.Action == providers.NoOp && c.Blocked == nil && c.Reason != ""
	}
	for _, step := range plan.Steps {
		if step.Phase == providers.PhaseRelease && blocked[step.Address] != "" {
			continue
		}
		l := leftover{of: step.Address, record: step.Record, step: fmt.Sprintf("%s %s", step.Op, step.Address)}
		l.text = fmt.Sprintf("%s (%s)", l.step, plan.Changes[step.Change].Reason)
		pending = append(pending, l)
	}
	for _, d := range plan.Deferred {
		pending = append(pending, leftover{of: d.Address, text: fmt.Sprintf("%s is deferred until %s", d.Address, d.Until)})
	}
	for _, f := range plan.Findings {
		if f.Kind == providers.FindHeldLock { // the holder is not vmctl's, or not any more
			continue
		}
		if f.Kind == providers.FindDrift && idle[f.Address] { // it stays as it is until it can be made where it is wanted
			continue
		}
		text := fmt.Sprintf("found %s of %s %s: %s", f.Kind, f.Address, f.Object, strings.Join(f.Evidence, "; "))
		pending = append(pending, leftover{of: f.Address, text: text, kind: f.Kind, name: f.Object})
	}
	return pending, blocked, world
}

func (b *harness) showPlan(p *planner.Plan) {
	for _, c := range p.Changes {
		if c.Action == providers.NoOp && c.Blocked == nil {
			continue
		}
		line := fmt.Sprintf("  %s %s: %s", c.Action, c.Address, c.Reason)
		if c.Blocked != nil {
			line += fmt.Sprintf(" [%s: %s]", c.Blocked.Kind(), c.Blocked.Error())
		}
		b.log = append(b.log, line)
	}
	for _, s := range p.Steps {
		b.say("    %d %s %s %s after %v", s.ID, s.Phase, s.Op, s.Address, s.After)
	}
	for _, d := range p.Deferred {
		b.say("    %s deferred until %s", d.Address, d.Until)
	}
}

// moveRecords moves records, as `state mv` does.
func (b *harness) moveRecords(moves [][2]string) {
	b.t.Helper()
	for i, m := range moves {
		from, err := spec.ParseAddress(m[0])
		b.must(err)
		to, err := spec.ParseAddress(m[1])
		b.must(err)
		r, there := b.store.snapshot.Records[from]
		if _, taken := b.store.snapshot.Records[to]; !there || taken {
			continue
		}
		b.say("state mv %s %s", from, to)
		b.store.snapshot = b.store.snapshot.With(state.Entry{
			Kind: state.Note, Op: state.Moved, Run: "mv", Step: i, From: from, Address: to, ID: r.ID, Name: r.Name,
		})
	}
}
