package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"vmctl/executor"
	"vmctl/internal/process"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/sim"
	vmspec "vmctl/spec"
	"vmctl/state"
)

// simWorld is a project on a simulated host, with a real state on disk, in this process:
// plans and applies are quick, and a test can cut them off at any write of the journal.
type simWorld struct {
	t          *rapid.T
	dir        string
	weightless bool
	program    string
	runs       int // state folders so far: each kill goes on in a copy
	wanted     map[string]wantedVM
	disks      map[string]wantedDisk
	sizes      map[string]int64 // of disks, the largest that was ever wanted
	kept       map[string]bool  // the disks that guests have written to
	faults     []cty.Value
	foreign    map[string]string // path and content of foreign files
	said       []string          // what happened, for readers of a failure
}

// wantedVM describes one VM of the spec.
type wantedVM struct {
	name    string // "": vmctl chooses it
	running bool
	memory  int64 // MiB
}

var worldProject = providers.Project{Name: "demo", ID: "k7m2qd9x4r"}

func newSimWorld(t *rapid.T, weightless bool) *simWorld {
	dir, err := os.MkdirTemp("", "w") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("vmctl") // testscript.Main put it there
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "base.img"), []byte(imageText), 0o600); err != nil {
		t.Fatal(err)
	}
	return &simWorld{
		t: t, dir: dir, weightless: weightless, program: program, wanted: map[string]wantedVM{}, foreign: map[string]string{},
		disks: map[string]wantedDisk{}, sizes: map[string]int64{"x": 1, "y": 1}, kept: map[string]bool{},
	}
}

// close ends all processes, and removes all files.
func (w *simWorld) close() {
	for _, vm := range w.processes() {
		w.end(vm.id)
	}
	if err := os.RemoveAll(w.dir); err != nil {
		w.t.Error(err)
	}
}

func (w *simWorld) say(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

func (w *simWorld) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nwhat happened:\n%s", fmt.Sprintf(format, args...), strings.Join(w.said, "\n"))
}

func (w *simWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.failf("%v", err)
	}
}

// host returns the folder of the simulated host.
func (w *simWorld) host() string { return filepath.Join(w.dir, "sim") }

func (w *simWorld) vmPath(name string) string { return filepath.Join(w.host(), "vms", name+".json") }

func (w *simWorld) processes() []vm {
	w.t.Helper()
	all, err := processesIn(w.dir)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		w.t.Fatal(err)
	}
	return all
}

func (w *simWorld) end(id process.Identity) {
	var refused *process.RefusedError
	if _, err := (process.Host{}).Force(id); err != nil && !errors.As(err, &refused) {
		w.t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := (process.Host{}).Wait(ctx, id); err != nil {
		w.t.Error(err)
	}
}

func (w *simWorld) types() providers.Types {
	return providers.Types{Systems: map[string]providers.Type{sim.TypeName: sim.Type(sim.Host{Program: w.program, Args: []string{"sim-vm"}})}}
}

// config loads the spec of the wanted world. Its waits are shorter than files can say.
func (w *simWorld) config() *vmspec.Config {
	w.t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "vmctl {\n  project = %q\n  id = %q\n}\nprovider \"sim\" \"here\" {\n  weightless = %t\n}\n", worldProject.Name, worldProject.ID, w.weightless)
	for _, label := range slices.Sorted(maps.Keys(w.wanted)) {
		v := w.wanted[label]
		fmt.Fprintf(&text, "vm %q {\n  provider = provider.sim.here\n  running = %t\n  memory = \"%dMiB\"\n", label, v.running, v.memory)
		if v.name != "" {
			fmt.Fprintf(&text, "  name = %q\n", v.name)
		}
		if imaged(label) {
			text.WriteString("  image = \"../base.img\"\n  root_disk {\n    size = \"1MiB\"\n  }\n")
		}
		for _, disk := range w.usedBy(label) {
			fmt.Fprintf(&text, "  additional_disk {\n    disk = disk.%s\n  }\n", disk)
		}
		text.WriteString("}\n")
	}
	text.WriteString(w.diskBlocks())
	dir := filepath.Join(w.dir, "spec")
	w.must(os.MkdirAll(dir, 0o700))
	w.must(os.WriteFile(filepath.Join(dir, "main.vmctl.hcl"), []byte(text.String()), 0o600))
	c, diags := vmspec.Load(dir, vmspec.Inputs{
		Supports: func(string, vmspec.Kind, string) bool { return true }, ProviderTypes: []string{sim.TypeName}, Version: "0.1.0",
	})
	if diags.HasErrors() {
		w.failf("%v", diags)
	}
	for i, p := range c.Providers {
		m := p.Attrs.AsValueMap()
		m["fault"] = cty.ListValEmpty(m["fault"].Type().ElementType())
		if len(w.faults) > 0 {
			m["fault"] = cty.ListVal(w.faults)
		}
		c.Providers[i].Attrs = cty.ObjectVal(m)
	}
	for i, r := range c.Resources {
		if r.Address.Kind != vmspec.VM {
			continue
		}
		m := r.Policy.AsValueMap()
		m["stop"] = cty.ObjectVal(map[string]cty.Value{
			"grace": cty.NumberFloatVal(0.1), "force": cty.True, "force_wait": cty.NumberIntVal(30),
		})
		c.Resources[i].Policy = cty.ObjectVal(m)
	}
	return c
}

func worldFault(op, kind, address string, times int) cty.Value {
	where := cty.NullVal(cty.String)
	if address != "" {
		where = cty.StringVal(address)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"op": cty.StringVal(op), "kind": cty.StringVal(kind), "address": where,
		"times": cty.NumberIntVal(int64(times)), "delay": cty.NumberFloatVal(0.05),
	})
}

// dataDir returns the data directory of a run.
func (w *simWorld) dataDir(run int) string { return filepath.Join(w.dir, fmt.Sprintf("d%d", run)) }

func (w *simWorld) store() state.Store {
	return state.NewStore(state.Folder{Dir: w.dataDir(w.runs), Now: time.Now}, state.Config{ID: worldProject.ID, Project: worldProject.Name, Version: "test", Now: time.Now})
}

// plan returns the plan of an apply at this moment, and the world that it was made on.
func (w *simWorld) plan(c *vmspec.Config, s *state.Snapshot) (*planner.Plan, *planner.World) {
	w.t.Helper()
	allow := map[vmspec.Address]bool{}
	for _, r := range c.Resources {
		allow[r.Address] = true
	}
	open := func(ctx context.Context, o planner.Opening) (providers.Provider, error) {
		p, err := o.Type.Open(ctx, providers.Settings{
			Name: o.Ref.Name, Attrs: o.Attrs, Dir: w.host(), Files: filepath.Join(w.dir, "spec"), Project: worldProject, Now: time.Now,
		})
		return watched{Provider: p, world: w}, err
	}
	p, world, err := planner.Make(context.Background(), open, c, s, planner.Options{
		Types: w.types(), Project: worldProject, Allow: planner.Allow{Replace: allow},
	})
	w.must(err)
	return p, world
}

// apply plans and carries the plan out. It is cut off, as by a kill, before its journal takes
// more than the given number of writes; negative: it is not. It reports whether everything
// went well.
func (w *simWorld) apply(writes, parallelism int, keepGoing executorMode) bool {
	w.t.Helper()
	ctx := context.Background()
	j, err := w.store().Open(ctx, state.Owner{Command: "test"})
	w.must(err)
	cut := &cutJournal{Journal: j, left: writes, killed: w.copyState}
	c := w.config()
	plan, world := w.plan(c, j.Snapshot())
	for _, s := range plan.Steps {
		w.say("  planned %d %s %s %s after %v", s.ID, s.Phase, s.Op, s.Address, s.After)
	}
	ok := !plan.Forbidden()
	if ok {
		events := &eventLog{world: w}
		summary, err := executor.Apply(ctx, executor.Run{
			Plan: plan, World: world, Journal: cut, ID: fmt.Sprintf("run%d", len(w.said)), Parallelism: parallelism,
			KeepGoing: keepGoing == keepsGoing, Now: time.Now, Watch: events.hear,
			Resolve: func(a vmspec.Address, values map[vmspec.Address]cty.Value) (vmspec.Resource, error) {
				r, diags := c.Resolve(a, values)
				if diags.HasErrors() {
					return r, diags
				}
				return r, nil
			},
		})
		if err != nil && !errors.Is(err, errCut) {
			w.failf("apply: %v", err)
		}
		ok = err == nil && summary.OK()
	} else {
		for _, c := range plan.Changes {
			if c.Blocked != nil {
				w.say("  blocked %s: %s", c.Address, c.Blocked.Error())
			}
		}
	}
	w.must(errors.Join(j.Close(), world.Close()))
	if cut.dead {
		w.runs++ // the next run goes on from the copy
	}
	return ok
}

type executorMode string

const (
	stopsAtFailure executorMode = "stop at a failure"
	keepsGoing     executorMode = "keep going"
)

// copyState copies the state as a kill leaves it, for the next run.
func (w *simWorld) copyState() error {
	from, next := w.dataDir(w.runs), w.dataDir(w.runs+1)
	if err := os.MkdirAll(next, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "state.json") && !strings.HasPrefix(e.Name(), "journal-") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(next, e.Name()), content, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cutJournal takes a number of writes and no more, as if the process were killed before the
// next one.
type cutJournal struct {
	state.Journal
	left   int // negative: no limit
	dead   bool
	killed func() error
}

var errCut = errors.New("killed")

func (j *cutJournal) Append(ctx context.Context, e ...state.Entry) error {
	if j.dead {
		return errCut
	}
	if j.left == 0 {
		j.dead = true
		return errors.Join(errCut, j.killed())
	}
	j.left--
	return j.Journal.Append(ctx, e...)
}

// eventLog demands that nothing begins after a failure that stops the run, except to bring up
// VMs that the run took down (rule 13).
type eventLog struct {
	world   *simWorld
	halted  string
	lowered map[int]bool
}

func (l *eventLog) hear(e executor.Event) {
	if l.lowered == nil {
		l.lowered = map[int]bool{}
	}
	if e.Kind == executor.StepProgress {
		return
	}
	failure := ""
	if e.Failure != nil {
		failure = ": " + e.Failure.Error()
	}
	l.world.say("  %s %s %s%s%s", e.Kind, e.Step.Op, e.Step.Address, e.Text, failure)
	switch e.Kind {
	case executor.Halted:
		l.halted = e.Text
	case executor.StepDone:
		if e.Step.Phase == providers.PhaseDown {
			l.lowered[e.Step.Change] = true
		}
	case executor.StepStarted:
		if l.halted != "" && !l.lowered[e.Step.Change] {
			l.world.t.Errorf("%s %s began after %q (rule 13)", e.Step.Op, e.Step.Address, l.halted)
		}
	case executor.StepProgress, executor.StepWaiting, executor.StepFailed, executor.StepWarned, executor.ConditionChanged:
	}
}

// watched demands of every step that it releases nothing of a running VM, and does not report
// a running VM as down (rule 17).
type watched struct {
	providers.Provider
	world *simWorld
}

var watching sync.Mutex

func (p watched) Do(ctx context.Context, work providers.Work, log providers.Log) (providers.Result, error) {
	before, released := p.world.belongings(work.Name), p.world.releases(work)
	r, err := p.Provider.Do(ctx, work, log)
	watching.Lock()
	defer watching.Unlock()
	released()
	if work.Address.Kind != vmspec.VM {
		return r, err
	}
	alive := p.world.alive(work.Name)
	after := p.world.belongings(work.Name)
	if len(alive) > 0 && work.Op != "start" {
		for path := range before {
			if !after[path] {
				p.world.t.Errorf("%s %s removed %s while %s runs (rule 17)", work.Op, work.Address, path, alive)
			}
		}
	}
	if down := work.Phase == providers.PhaseDown || work.Phase == providers.PhaseRecover || work.Phase == providers.PhaseRemove; down && err == nil && len(alive) > 0 {
		p.world.t.Errorf("%s %s is done, and %s runs (rule 17)", work.Op, work.Address, alive)
	}
	if len(alive) > 1 {
		p.world.t.Errorf("after %s %s there run %s", work.Op, work.Address, alive)
	}
	return r, err
}

// belongings lists the files that a VM needs to run.
func (w *simWorld) belongings(name string) map[string]bool {
	all := map[string]bool{}
	var f struct{ Run json.RawMessage }
	if content, err := os.ReadFile(w.vmPath(name)); err == nil {
		all[w.vmPath(name)] = true
		if json.Unmarshal(content, &f) == nil && f.Run != nil {
			all[w.vmPath(name)+" run"] = true
		}
	}
	for _, suffix := range []string{".root", ".root.lock"} {
		path := filepath.Join(w.host(), "disks", name+suffix)
		if _, err := os.Lstat(path); err == nil {
			all[path] = true
		}
	}
	return all
}

// alive lists the processes that run a VM; without processes, its record if it runs.
func (w *simWorld) alive(name string) []string {
	if w.weightless {
		var f struct{ Run *struct{ Ended bool } }
		content, err := os.ReadFile(w.vmPath(name))
		if err == nil && json.Unmarshal(content, &f) == nil && f.Run != nil && !f.Run.Ended {
			return []string{"its record"}
		}
		return nil
	}
	var all []string
	for _, vm := range w.processes() {
		if vm.name == name {
			all = append(all, fmt.Sprintf("pid %d", vm.id.PID))
		}
	}
	return all
}
