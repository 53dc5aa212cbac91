package view_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// remembered returns the record of an object with a hostile name.
func remembered() state.Record {
	return state.Record{
		Kind: spec.VM, Provider: spec.ProviderRef{Type: "libvirt", Name: "default"}, ID: "6c1e", Name: "quickstart.dev\x1b[2J",
		Generation: 2, Starts: 1, LastStop: "forced", Was: []spec.Address{vm("old")}, Uses: []spec.Address{vm("db")},
		Values: cty.ObjectVal(map[string]cty.Value{"memory": cty.NumberIntVal(1 << 30), "running": cty.True}),
		Policy: cty.ObjectVal(map[string]cty.Value{"stop": cty.ObjectVal(map[string]cty.Value{"grace": cty.NumberIntVal(30)})}),
	}
}

func damaged() view.StateRepairDocument {
	var doc view.StateRepairDocument
	doc.Fill(state.Repair{
		Damage: []state.Damage{{Path: "/d/state.json", Problem: "it is empty"}, {Path: "/d/journal-3.ndjson", Line: 4, Problem: "the last line was not written whole"}},
		Steps:  []string{"keep a copy of it: state.json.corrupt", "go back to snapshot 2, /d/state.json.backup"},
		Kept:   []string{"/d/state.json.corrupt"}, Serial: 5, Records: 1,
	})
	return doc
}

func TestState(t *testing.T) {
	entry := view.StateEntryOf(vm("dev"), remembered())
	moved := view.StateMvDocument{FormatVersion: view.FormatVersion, From: vm("old"), Record: entry, OldInFiles: true}
	forgotten := view.StateRmDocument{FormatVersion: view.FormatVersion, Forgotten: []view.StateLeft{{StateEntry: entry}, {StateEntry: entry, InFiles: true}}}
	rebuilt := view.StateRebuildJSON(&planner.Plan{
		Changes: []planner.Change{{
			Change:   providers.Change{Address: vm("dev"), Kind: spec.VM, Name: "quickstart.dev", ID: "6c1e"},
			Provider: spec.ProviderRef{Type: "libvirt", Name: "default"}, Warnings: []string{"it is not in the files: its record prevents its destruction"},
		}},
		Findings: []providers.Finding{{Kind: providers.FindUnknown, Object: "far", Evidence: []string{"qemu+ssh://far/system does not answer"}}},
	}, view.OwnFlags{})
	would := damaged()
	would.DryRun = true
	list := view.StateListDocument{FormatVersion: view.FormatVersion, Project: "quickstart", ID: "k7m2qd9x4r", Serial: 3, Records: []view.StateEntry{entry}}
	shows := map[string]func(view.Screen){
		"state-list":         func(s view.Screen) { view.StateList(s, list) },
		"state-show":         func(s view.Screen) { view.StateShow(s, vm("dev"), remembered()) },
		"state-rm":           func(s view.Screen) { view.StateRm(s, forgotten, "vmctl plan") },
		"state-mv":           func(s view.Screen) { view.StateMv(s, moved, "vmctl plan") },
		"state-repair":       func(s view.Screen) { view.StateRepair(s, damaged(), "vmctl plan") },
		"state-repair-would": func(s view.Screen) { view.StateRepair(s, would, "vmctl state repair") },
		"state-rebuild":      func(s view.Screen) { view.StateRebuild(s, rebuilt, "vmctl plan") },
		"state-rebuild-none": func(s view.Screen) { view.StateRebuild(s, view.StateRebuildDocument{}, "vmctl plan") },
	}
	for name, show := range shows {
		golden(t, name+"-80", on(80, show))
		golden(t, name+"-40", on(40, show))
	}
	documents := map[string]any{
		"state-list-json": list, "state-show-json": view.StateShowJSON(vm("dev"), remembered()), "state-rm-json": forgotten,
		"state-mv-json": moved, "state-repair-json": damaged(), "state-rebuild-json": rebuilt,
	}
	for name, document := range documents {
		var out bytes.Buffer
		if err := view.JSON(&out, document); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
	}
}

func TestLocks(t *testing.T) {
	since := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	one := state.Holder{PID: 4711, Host: "ada", Command: "vmctl apply", Since: since}
	shell := state.Holder{PID: 4712, Host: "ada", Command: "vmctl vm shell dev", Since: since}
	doc := view.LocksDocument{FormatVersion: view.FormatVersion, Dir: "/d", Locks: []view.LockEntry{
		{Name: "lock", Path: "/d/lock", State: "held", Holders: []state.Holder{one}, Left: []state.Holder{}},
		{Name: "busy/vm.dev", Path: "/d/busy/vm.dev", State: "shared", Holders: []state.Holder{shell, {}}, Left: []state.Holder{one}},
		{Name: "busy/vm.web", Path: "/d/busy/vm.web", State: "free", Holders: []state.Holder{}, Left: []state.Holder{}},
	}}
	released := view.LockReleaseDocument{FormatVersion: view.FormatVersion, Name: "lock", Path: "/d/lock", Removed: []state.Holder{one}}
	for name, show := range map[string]func(view.Screen){
		"locks":        func(s view.Screen) { view.Locks(s, doc, "vmctl lock release") },
		"lock-release": func(s view.Screen) { view.LockRelease(s, released) },
		"lock-free":    func(s view.Screen) { view.LockRelease(s, view.LockReleaseDocument{Name: "lock"}) },
	} {
		golden(t, name+"-80", on(80, show))
		golden(t, name+"-40", on(40, show))
	}
	for name, document := range map[string]any{"locks-json": doc, "lock-release-json": released} {
		var out bytes.Buffer
		if err := view.JSON(&out, document); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
	}
}
