package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"vmctl/spec"
	"vmctl/state"
)

// attributeTypes draws the types of some attributes of a build.
func attributeTypes(t *rapid.T, label string) map[string]cty.Type {
	element := func(label string) cty.Type {
		inner := map[string]cty.Type{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"disk", "size", "mode"}), 1, 3, rapid.ID).Draw(t, label) {
			inner[name] = rapid.SampledFrom([]cty.Type{cty.String, cty.Number, cty.Bool}).Draw(t, label+"."+name)
		}
		return cty.Object(inner)
	}
	all := map[string]cty.Type{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 0, 6, rapid.ID).Draw(t, label) {
		switch rapid.IntRange(0, 4).Draw(t, label+"."+name) {
		case 0:
			all[name] = cty.String
		case 1:
			all[name] = cty.Number
		case 2:
			all[name] = element(label + "." + name)
		case 3:
			all[name] = cty.List(element(label + "." + name))
		default:
			all[name] = cty.Map(cty.String)
		}
	}
	return all
}

func typesOf(t *rapid.T, label string) state.Types {
	return state.Types{
		Values: attributeTypes(t, label+" values"), Policy: cty.Object(attributeTypes(t, label+" policy")), Settings: cty.Object(attributeTypes(t, label+" settings")),
	}
}

// drawn draws a value of a type.
func drawn(t *rapid.T, of cty.Type, label string) cty.Value {
	if rapid.IntRange(0, 9).Draw(t, label+" null") == 0 {
		return cty.NullVal(of)
	}
	switch {
	case of == cty.String:
		return cty.StringVal(rapid.SampledFrom([]string{"", "x", "7", "true", "ä\n"}).Draw(t, label))
	case of == cty.Number:
		return cty.NumberIntVal(rapid.Int64().Draw(t, label))
	case of == cty.Bool:
		return cty.BoolVal(rapid.Bool().Draw(t, label))
	case of.IsMapType():
		return cty.MapVal(map[string]cty.Value{"k": drawn(t, of.ElementType(), label+" k")})
	case of.IsListType():
		var all []cty.Value
		for i := range rapid.IntRange(0, 2).Draw(t, label+" length") {
			all = append(all, drawn(t, of.ElementType(), fmt.Sprint(label, i)))
		}
		if all == nil {
			return cty.ListValEmpty(of.ElementType())
		}
		return cty.ListVal(all)
	default:
		return cty.ObjectVal(drawnAll(t, of.AttributeTypes(), label))
	}
}

func drawnAll(t *rapid.T, types map[string]cty.Type, label string) map[string]cty.Value {
	all := map[string]cty.Value{}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		all[name] = drawn(t, types[name], label+"."+name)
	}
	return all
}

// A build writes a record, another one with other types changes some of its attributes, and the
// first one reads the rest as it was.
func TestWhatAnotherBuildWroteIsKept(t *testing.T) {
	kept, foreign := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		ours, theirs := typesOf(t, "ours"), typesOf(t, "theirs")
		first := folderAt(tempDir(t)).knowing(ours)
		second := first.knowing(theirs)
		r := state.Record{
			Kind: spec.VM, ID: "id", Name: "name", Values: cty.ObjectVal(drawnAll(t, ours.Values, "values")),
			Policy: drawn(t, ours.Policy, "policy"), Settings: drawn(t, ours.Settings, "settings"),
		}
		put := func(f dataDir, r state.Record) {
			j, err := f.Open(t.Context(), state.Owner{Command: "vmctl apply"})
			if err != nil {
				t.Fatal(err)
			}
			err = j.Append(t.Context(), state.Entry{Run: "r", Kind: state.Done, Op: "define", Address: dev, Put: &r})
			if err := errors.Join(err, j.Close()); err != nil {
				t.Fatal(err)
			}
		}
		get := func(f dataDir) state.Record {
			s, err := f.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s.Records[dev]
		}
		put(first, r)

		seen := get(second)
		all := seen.Values.AsValueMap()
		if all == nil {
			all = map[string]cty.Value{}
		}
		changed := map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(theirs.Values)) {
			if rapid.IntRange(0, 3).Draw(t, "changes "+name) == 0 {
				continue
			}
			v := drawn(t, theirs.Values[name], "new "+name)
			if before, there := all[name]; !there || !before.RawEquals(v) {
				all[name], changed[name] = v, true
			}
		}
		seen.Values, seen.Starts = cty.ObjectVal(all), seen.Starts+1
		put(second, seen)

		got := get(first)
		for name, want := range r.Values.AsValueMap() {
			switch have := got.Values.AsValueMap()[name]; {
			case changed[name]:
				foreign++
			case have == cty.NilVal || !have.RawEquals(want):
				t.Fatalf("%s is %#v, want %#v", name, have, want)
			default:
				kept++
			}
		}
		if !got.Policy.RawEquals(r.Policy) || !got.Settings.RawEquals(r.Settings) {
			t.Fatalf("policy %#v and settings %#v, want %#v and %#v", got.Policy, got.Settings, r.Policy, r.Settings)
		}
	})
	if kept == 0 || foreign == 0 {
		t.Errorf("%d attributes kept, %d changed: nothing was shown", kept, foreign)
	}
}

func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Every flipped bit is noticed, and the repair brings back what the snapshot said.
func TestEveryFlippedBitIsMended(t *testing.T) {
	f := folder(t)
	for run := range 3 {
		j := open(t, f)
		r := record("dev", int64(run)<<20)
		appendTo(t, j, state.Entry{Run: fmt.Sprint(run), Kind: state.Done, Op: "define", Address: dev, Put: &r})
		appendTo(t, j, state.Entry{Run: fmt.Sprint(run), Kind: state.Begin, Op: "start", Address: webA, Step: run})
		closeIt(t, j)
	}
	want := read(t, f)
	good, backup, journal := file(t, f, "state.json"), file(t, f, "state.json.backup"), file(t, f, "journal.ndjson.backup")
	step := 7
	if testing.Short() {
		step = 97
	}
	for bit := 0; bit < 8*len(good); bit += step {
		flipped := []byte(good)
		flipped[bit/8] ^= 1 << (bit % 8)
		place(t, f, "state.json", string(flipped))
		_, err := f.Read(t.Context())
		var corrupt *state.CorruptError
		var newer *state.NewerError
		switch {
		case errors.As(err, &newer):
			continue
		case !errors.As(err, &corrupt):
			t.Fatalf("bit %d: %v", bit, err)
		}
		if _, err := f.Repair(t.Context(), state.Owner{Command: "vmctl state repair"}); err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
		got := read(t, f)
		got.Serial = want.Serial
		if d := diff(want, got); d != "" {
			t.Fatalf("bit %d: after the repair (-want +got):\n%s", bit, d)
		}
		for _, name := range names(t, f) {
			if strings.HasSuffix(name, ".corrupt") {
				remove(t, f, name)
			}
		}
		place(t, f, "state.json.backup", backup)
		place(t, f, "journal.ndjson.backup", journal)
	}
}

func remove(t *testing.T, f dataDir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(f.Dir, name)); err != nil {
		t.Fatal(err)
	}
}

// A build that knows an older shape of a kind reads its records, and writes nothing.
func TestNewerShapeIsReadAndNotWritten(t *testing.T) {
	older := folder(t)
	newer := older.knowing(func() state.Types {
		types := known()
		types.Shapes = map[spec.Kind]int{spec.VM: 2, spec.Disk: 1, "pod": 1}
		return types
	}())
	newer.Version = "0.9.0"
	for _, a := range []spec.Address{dev, {Kind: "pod", Name: "p"}} {
		f := folder(t)
		older.Dir, newer.Dir = f.Dir, f.Dir
		closeIt(t, open(t, newer))
		// What the newer build knows and did not use keeps nobody away.
		r := record("data", 1)
		j := open(t, newer)
		appendTo(t, j, state.Entry{Kind: state.Done, Op: "define", Address: spec.Address{Kind: spec.Disk, Name: "data"}, Put: &r})
		closeIt(t, j)
		closeIt(t, open(t, older))

		j = open(t, newer)
		appendTo(t, j, state.Entry{Kind: state.Done, Op: "define", Address: a, Put: &r})
		crashed := abandon(t, newer)
		closeIt(t, j)
		for what, dir := range map[string]string{"the snapshot": newer.Dir, "a journal": crashed.Dir} {
			older.Dir = dir
			if s := read(t, older); s.Records[a].ID != r.ID {
				t.Errorf("%s in %s is read as %+v", a, what, s.Records[a])
			}
			if err := os.RemoveAll(filepath.Join(dir, "lock.owner")); err != nil { // of the run that was killed
				t.Fatal(err)
			}
			before := contents(t, older)
			_, err := older.Open(t.Context(), state.Owner{Command: "vmctl apply"})
			var refused *state.NewerError
			if !errors.As(err, &refused) || refused.Kind != a.Kind || refused.Version != "0.9.0" {
				t.Errorf("%s in %s: opened: %v", a, what, err)
			}
			if now := contents(t, older); now != before {
				t.Errorf("%s in %s: files changed:\n%s", a, what, now)
			}
		}
	}
}

// Values of an older shape are upgraded version by version when they are read, in snapshots and in
// journals.
func TestShapeUpgrade(t *testing.T) {
	first := folder(t)
	j := open(t, first)
	r := record("dev", 5)
	appendTo(t, j, state.Entry{Kind: state.Done, Op: "define", Address: dev, Put: &r})
	closeIt(t, j)
	j = open(t, first)
	r = record("dev", 7)
	appendTo(t, j, state.Entry{Kind: state.Done, Op: "set", Address: dev, Put: &r})
	crashed := abandon(t, first)
	closeIt(t, j)

	old := folder(t)
	place(t, old, "state.json", file(t, crashed, "state.json"))
	types := known()
	types.Shapes = map[spec.Kind]int{spec.VM: 3}
	types.Upgrades = map[int]func(map[string]json.RawMessage) error{
		1: func(values map[string]json.RawMessage) error {
			values["size"] = values["memory"]
			delete(values, "memory")
			return nil
		},
		2: func(values map[string]json.RawMessage) error {
			values["size"] = append(values["size"], '0')
			return nil
		},
	}
	for what, dir := range map[string]string{"snapshot": first.Dir, "journal": crashed.Dir} {
		f := folder(t).knowing(types)
		f.Dir = dir
		for _, how := range []string{"read", "written and read"} {
			values := read(t, f).Records[dev].Values
			if values.Type().HasAttribute("memory") || !values.GetAttr("size").RawEquals(cty.NumberIntVal(70)) {
				t.Errorf("%s, %s: %#v", what, how, values)
			}
			j := open(t, f)
			appendTo(t, j, state.Entry{Kind: state.Note, Op: state.Settled, Address: dev})
			closeIt(t, j)
		}
	}
	delete(types.Upgrades, 2)
	if _, err := first.knowing(types).Read(t.Context()); err != nil {
		t.Errorf("what has today's shape needs no upgrade: %v", err)
	}
	want := "they have version 2 of the shape of vm, which this vmctl cannot read any more"
	if _, err := old.knowing(types).Read(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("read %v, want %s", err, want)
	}
}

// A repair reads the journal of the first run after an upgrade as that run wrote it.
func TestRepairAfterAnUpgrade(t *testing.T) {
	old := folder(t)
	for _, memory := range []int64{5, 7} { // the second run leaves a backup and its journal
		j := open(t, old)
		r := record("dev", memory)
		appendTo(t, j, state.Entry{Kind: state.Done, Op: "define", Address: dev, Put: &r})
		closeIt(t, j)
	}
	types := known()
	types.Shapes = map[spec.Kind]int{spec.VM: 2}
	types.Upgrades = map[int]func(map[string]json.RawMessage) error{1: func(values map[string]json.RawMessage) error {
		values["memory"] = append(values["memory"], '0')
		return nil
	}}
	f := old.knowing(types)
	j := open(t, f)
	r := record("web", 9)
	appendTo(t, j, state.Entry{Kind: state.Done, Op: "define", Address: webA, Put: &r})
	crashed := abandon(t, f).knowing(types)
	closeIt(t, j)
	place(t, crashed, "state.json", file(t, crashed, "state.json")[:100])
	if _, err := crashed.Repair(t.Context(), state.Owner{Command: "vmctl state repair"}); err != nil {
		t.Fatal(err)
	}
	s := read(t, crashed)
	for a, want := range map[spec.Address]int64{dev: 70, webA: 9} {
		if v := s.Records[a].Values; v == cty.NilVal || !v.GetAttr("memory").RawEquals(cty.NumberIntVal(want)) {
			t.Errorf("%s after the repair: %#v, want the memory %d", a, v, want)
		}
	}
}
