package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/planner"
	"vmctl/providers"
	vmspec "vmctl/spec"
)

// Random specs on random worlds, with faults, kills and meddling: once the faults are used
// up, two applies reach the wanted state, the third finds nothing to do, and a destroy leaves
// nothing. vmctl never touches foreign files, begins nothing after a failure, and releases
// nothing of a running VM (rules 5, 13 and 17).
//
// row X13
func TestSimulatedWorldsConverge(t *testing.T) {
	checks := "60"
	if testing.Short() {
		checks = "15"
	}
	converge(t, checks, true)
}

// The same with processes.
//
// row X13
// row X18
func TestSimulatedWorldsWithProcessesConverge(t *testing.T) {
	checks := "12"
	if testing.Short() {
		checks = "2"
	}
	converge(t, checks, false)
}

func converge(t *testing.T, checks string, weightless bool) {
	t.Helper()
	before := flag.Lookup("rapid.checks").Value.String()
	if before == "100" { // not chosen by whoever runs this
		if err := flag.Set("rapid.checks", checks); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := flag.Set("rapid.checks", before); err != nil {
				t.Error(err)
			}
		}()
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newSimWorld(t, weightless)
		defer w.close()
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			w.edit()
			w.editDisks()
			w.meddle()
			w.breakThings()
			writes := rapid.IntRange(-1, 12).Draw(t, "writes before a kill")
			mode := rapid.SampledFrom([]executorMode{stopsAtFailure, keepsGoing}).Draw(t, "mode")
			w.say("apply of %+v %+v, %s, killed after %d writes", w.wanted, w.disks, mode, writes)
			w.apply(writes, rapid.SampledFrom([]int{1, 3, 10}).Draw(t, "parallelism"), mode)
			w.untouched()
			w.keeps()
			w.fill()
		}
		w.settle()
		w.say("all is to go")
		clear(w.wanted)
		clear(w.disks)
		clear(w.kept)
		w.settle()
		w.gone()
	})
}

// edit changes the wanted VMs and disks.
func (w *simWorld) edit() {
	for _, label := range []string{"a", "b", "c", "d"} {
		switch rapid.SampledFrom([]string{"keep", "change", "name", "drop"}).Draw(w.t, "edit of "+label) {
		case "change":
			v := w.wanted[label]
			v.running = rapid.Bool().Draw(w.t, "running")
			v.memory = rapid.SampledFrom([]int64{64, 128}).Draw(w.t, "memory")
			w.wanted[label] = v
		case "name":
			if v, ok := w.wanted[label]; ok {
				v.name = "other-" + label
				w.wanted[label] = v
			}
		case "drop":
			delete(w.wanted, label)
		}
	}
}

// meddle damages the host as people and accidents do.
func (w *simWorld) meddle() {
	for range rapid.IntRange(0, 2).Draw(w.t, "hands") {
		switch what := rapid.SampledFrom([]string{"kill", "lose pid file", "lose socket", "lose file", "foreign"}).Draw(w.t, "hand"); what {
		case "kill":
			w.kill()
		case "lose pid file":
			w.lose("run", "*.pid")
		case "lose socket":
			w.lose("run", "*.sock")
		case "lose file":
			w.lose("vms", "[do]*.json") // not what is foreign
		case "foreign":
			path := w.vmPath("theirs")
			w.foreign[path] = `{"format":1,"id":"theirs","name":"theirs","config":{"cpus":1,"memory":1,"accel":"tcg"}}`
			w.must(os.MkdirAll(filepath.Dir(path), 0o700))
			w.must(os.WriteFile(path, []byte(w.foreign[path]), 0o600))
			w.say("somebody makes theirs")
		}
	}
}

// kill ends the process of a VM, or the run of a VM without a process.
func (w *simWorld) kill() {
	if !w.weightless {
		all := w.processes()
		if len(all) > 0 {
			vm := rapid.SampledFrom(all).Draw(w.t, "victim")
			w.say("%s is killed", vm.name)
			w.end(vm.id)
		}
		return
	}
	files := w.files("vms", "[do]*.json")
	if len(files) == 0 {
		return
	}
	path := rapid.SampledFrom(files).Draw(w.t, "victim")
	content, err := os.ReadFile(path)
	w.must(err)
	var f map[string]any
	w.must(json.Unmarshal(content, &f))
	if run, ok := f["run"].(map[string]any); ok {
		run["ended"] = true
		content, err := json.Marshal(f)
		w.must(err)
		w.must(os.WriteFile(path, content, 0o600))
		w.say("%s ends", path)
	}
}

func (w *simWorld) files(dir, pattern string) []string {
	files, err := filepath.Glob(filepath.Join(w.host(), dir, pattern))
	w.must(err)
	return files
}

func (w *simWorld) lose(dir, pattern string) {
	files := w.files(dir, pattern)
	if len(files) > 0 {
		path := rapid.SampledFrom(files).Draw(w.t, "lost")
		w.must(os.Remove(path))
		w.say("%s is lost", path)
	}
}

// breakThings declares a few random faults.
func (w *simWorld) breakThings() {
	w.faults = nil
	for i := range rapid.IntRange(0, 3).Draw(w.t, "faults") {
		f := rapid.SampledFrom([][2]string{
			{"define", "fail"},
			{"define", "partial"},
			{"define", "unreadable"},
			{"redefine", "fail"},
			{"redefine", "partial"},
			{"start", "fail"},
			{"start", "partial"},
			{"start", "die"},
			{"start", "slow"},
			{"wait_ready", "fail"},
			{"wait_ready", "die"},
			{"wait_ready", "slow"},
			{"stop", "fail"},
			{"stop", "partial"},
			{"stop", "ignore_request"},
			{"stop", "late_exit"},
			{"stop", "leak_pid"},
			{"stop", "unreadable"},
			{"recover", "fail"},
			{"recover", "partial"},
			{"recover", "ignore_request"},
			{"recover", "leak_pid"},
			{"delete", "fail"},
			{"delete", "partial"},
			{"grow", "fail"},
			{"grow", "partial"},
			{"upload", "fail"},
			{"upload", "partial"},
			{"unlock", "fail"},
			{"clear", "fail"},
		}).Draw(w.t, "fault")
		address := rapid.SampledFrom([]string{"", "vm.a", "vm.b", "disk.x"}).Draw(w.t, "address")
		w.faults = append(w.faults, worldFault(f[0], f[1], address, i+1))
		w.say("fault %v %s, %d times", f, address, i+1)
	}
}

// settle applies twice without faults, and demands that everything is as wanted then.
func (w *simWorld) settle() {
	w.t.Helper()
	w.faults = nil
	for range 2 {
		w.say("apply of %+v %+v", w.wanted, w.disks)
		if !w.apply(-1, 10, stopsAtFailure) {
			w.failf("an apply without faults failed")
		}
		w.untouched()
		w.keeps()
	}
	s, err := w.store().Read(context.Background())
	w.must(err)
	plan, world := w.plan(w.config(), s)
	w.must(world.Close())
	var left []string
	for _, step := range plan.Steps {
		left = append(left, fmt.Sprintf("%s %s", step.Op, step.Address))
	}
	for _, c := range plan.Changes {
		if c.Blocked != nil {
			left = append(left, fmt.Sprintf("%s is blocked: %s", c.Address, c.Blocked.Error()))
		}
	}
	for _, f := range plan.Findings {
		left = append(left, fmt.Sprintf("found %s of %s: %s", f.Kind, f.Object, strings.Join(f.Evidence, "; ")))
	}
	if len(left) > 0 {
		w.failf("after two applies without faults there is left:\n%s", strings.Join(left, "\n"))
	}
	if diff := cmp.Diff(w.want(), w.is(world)); diff != "" {
		w.failf("after two applies without faults (-want +is):\n%s", diff)
	}
	if len(s.Records) != len(w.wanted)+len(w.disks) || len(s.Interrupted) > 0 {
		w.failf("there are %d records of %d VMs and %d disks, and interrupted %v", len(s.Records), len(w.wanted), len(w.disks), s.Interrupted)
	}
}

// want lists the wanted world, VM by VM. A VM without a name of its own keeps the name that
// vmctl chose, or that was once set.
func (w *simWorld) want() []string {
	all := w.wantDisks()
	for label, v := range w.wanted {
		state, processes := providers.StateOff, 0
		if v.running {
			state = providers.StateRunning
			if !w.weightless {
				processes = 1
			}
		}
		all = append(all, fmt.Sprintf("vm.%s%s %s %dMiB %d processes %v", label, v.name, state, v.memory, processes, w.usedBy(label)))
	}
	for path := range w.foreign {
		all = append(all, "foreign "+filepath.Base(path))
	}
	slices.Sort(all)
	return all
}

func (w *simWorld) is(world *planner.World) []string {
	processes := map[string]int{}
	for _, vm := range w.processes() {
		processes[vm.name]++
	}
	var all []string
	for _, system := range world.Systems() {
		for _, o := range system.Inventory.Objects {
			if o.Owner == nil {
				all = append(all, "foreign "+o.Name+".json")
				continue
			}
			if o.Kind == vmspec.Disk {
				all = append(all, diskIs(o))
				continue
			}
			name := o.Name
			if w.wanted[o.Owner.Address.Name].name == "" {
				name = ""
			}
			memory, _ := o.Attrs.GetAttr("memory").AsBigFloat().Int64()
			all = append(all, fmt.Sprintf("%s%s %s %dMiB %d processes %v", o.Owner.Address, name, o.State, memory>>20, processes[o.Name], attachedTo(o)))
			delete(processes, o.Name)
		}
	}
	if len(world.Systems()) == 0 { // nobody looks
		for path := range w.foreign {
			all = append(all, "foreign "+filepath.Base(path))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(processes)) {
		all = append(all, fmt.Sprintf("%d processes of %s", processes[name], name))
	}
	slices.Sort(all)
	return all
}

// untouched demands that foreign files are unchanged (rule 5).
func (w *simWorld) untouched() {
	w.t.Helper()
	for _, path := range slices.Sorted(maps.Keys(w.foreign)) {
		content, err := os.ReadFile(path)
		w.must(err)
		if string(content) != w.foreign[path] {
			w.failf("%s has %q, and had %q (rule 5)", path, content, w.foreign[path])
		}
	}
}

// gone demands that nothing is left of any VM.
func (w *simWorld) gone() {
	w.t.Helper()
	for _, pattern := range []string{"vms/*", "run/*", "disks/*", "images/*", "write.tmp"} {
		files, err := filepath.Glob(filepath.Join(w.host(), pattern))
		w.must(err)
		for _, path := range files {
			if w.foreign[path] == "" {
				w.failf("left: %s", path)
			}
		}
	}
}
