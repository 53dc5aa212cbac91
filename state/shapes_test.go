package state_test

import (
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
			if rapid.IntRange(0, 3).Draw(t, "changes "+name) > 0 {
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
