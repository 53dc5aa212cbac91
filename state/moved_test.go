package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers/providertest/box"
	"vmctl/spec"
	"vmctl/state"
)

func TestMovedRecord(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	first, user := record("dev", 1), record("web", 2)
	user.Uses = []spec.Address{dev, {Kind: spec.VM, Name: "z"}}
	to := spec.Address{Kind: spec.VM, Name: "new"}
	appendTo(t, j,
		state.Entry{Run: "r", Kind: state.Done, Step: 0, Address: dev, Put: &first},
		state.Entry{Run: "r", Kind: state.Done, Step: 1, Address: webA, Put: &user},
		state.Entry{Run: "r", Kind: state.Begin, Step: 2, Op: "stop", Address: dev})
	appendTo(t, j, state.Entry{Run: "m", Kind: state.Note, Op: state.Moved, From: dev, Address: to})
	first.Was = []spec.Address{dev}
	user.Uses = []spec.Address{to, {Kind: spec.VM, Name: "z"}}
	want := map[spec.Address]state.Record{to: first, webA: user}
	crashed := abandon(t, f)
	closeIt(t, j)
	for what, f := range map[string]dataDir{"closed": f, "crashed": crashed} {
		s := read(t, f)
		if d := diff(want, s.Records); d != "" {
			t.Errorf("%s: records (-want +got):\n%s", what, d)
		}
		if got := interrupted(s); got != "r/2 stop vm.new" {
			t.Errorf("%s: interrupted %s", what, got)
		}
	}
	// On, and back: it was at each of the others.
	j = open(t, f)
	appendTo(t, j, state.Entry{Run: "m", Kind: state.Note, Op: state.Moved, From: to, Address: dev})
	closeIt(t, j)
	if d := cmp.Diff([]spec.Address{to}, read(t, f).Records[dev].Was); d != "" {
		t.Errorf("it was at (-want +got):\n%s", d)
	}
	if s := read(t, f); s.Serial != 2 {
		t.Errorf("serial %d, want one more for each change", s.Serial)
	}
}

func TestForgottenRecord(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	r := record("dev", 1)
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Done, Address: dev, Put: &r})
	appendTo(t, j, state.Entry{Run: "f", Kind: state.Note, Op: state.Forgotten, Address: dev, ID: r.ID, Drop: true})
	closeIt(t, j)
	s := read(t, f)
	if d := diff(map[string]spec.Address{r.ID: dev}, s.Forgotten); d != "" || len(s.Records) != 0 {
		t.Errorf("%d records, forgotten (-want +got):\n%s", len(s.Records), d)
	}
	j = open(t, f)
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Done, Address: webA, Put: &r})
	closeIt(t, j)
	if s := read(t, f); len(s.Forgotten) != 0 {
		t.Errorf("forgotten though it has a record again: %v", s.Forgotten)
	}

	// An ID that blocks no address is spent for ever.
	j = open(t, f)
	appendTo(t, j, state.Entry{Run: "f", Kind: state.Note, Op: state.Forgotten, ID: r.ID})
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Done, Address: webA, Put: &r})
	closeIt(t, j)
	if d := diff(map[string]spec.Address{r.ID: {}}, read(t, f).Forgotten); d != "" {
		t.Errorf("forgotten (-want +got):\n%s", d)
	}
}

func TestNotesThatSayTooLittleAreRefused(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	defer closeIt(t, j)
	for want, e := range map[string]state.Entry{
		"an entry that moves a record and does not name two addresses": {Kind: state.Note, Op: state.Moved, Address: dev},
		"an entry that lets go of an object and does not name it":      {Kind: state.Note, Op: state.Forgotten, Address: dev, Drop: true},
	} {
		if err := j.Append(t.Context(), e); err == nil || err.Error() != "write the journal: "+want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// What refers to a resource that was moved refers to it on, and what is inside of
// it is.
func TestReferencesToAMovedRecord(t *testing.T) {
	cache := spec.Address{Kind: spec.Disk, Name: "cache"}
	data := spec.Address{Kind: spec.Disk, Name: "data"}
	note := spec.Address{Kind: box.Kind, Name: "note"}
	renamed := spec.Address{Kind: spec.VM, Name: "new"}
	disks := func(name string) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{
			"accel": cty.StringVal("disk.cache"), // which is no reference, whatever it says
			"additional_disk": cty.ListVal([]cty.Value{
				cty.ObjectVal(map[string]cty.Value{"disk": cty.StringVal("disk.other"), "mount_point": cty.NullVal(cty.String)}),
				cty.ObjectVal(map[string]cty.Value{"disk": cty.StringVal(name), "mount_point": cty.NullVal(cty.String)}),
			}),
		})
	}
	f := folder(t)
	j := open(t, f)
	disk, user, inside, bare := record("cache", 1), record("dev", 1), record("note", 1), record("bare", 1)
	disk.Kind, user.Kind, inside.Kind = spec.Disk, spec.VM, box.Kind
	user.Uses, user.Values = []spec.Address{cache}, disks("disk.cache")
	inside.Uses, inside.Inside = nil, dev
	inside.Values = cty.ObjectVal(map[string]cty.Value{"in": cty.StringVal("vm.dev"), "content": cty.StringVal("vm.dev")})
	bare.Uses, bare.Values = []spec.Address{cache}, cty.NilVal
	for i, a := range []spec.Address{cache, dev, note, webA} {
		appendTo(t, j, state.Entry{Run: "r", Kind: state.Done, Step: i, Address: a, Put: []*state.Record{&disk, &user, &inside, &bare}[i]})
	}
	appendTo(t, j,
		state.Entry{Run: "m", Kind: state.Note, Op: state.Moved, From: cache, Address: data},
		state.Entry{Run: "m", Kind: state.Note, Op: state.Moved, From: dev, Address: renamed})
	closeIt(t, j)
	disk.Was, user.Was = []spec.Address{cache}, []spec.Address{dev}
	user.Uses, user.Values = []spec.Address{data}, disks("disk.data")
	inside.Uses, inside.Inside = nil, renamed
	inside.Values = cty.ObjectVal(map[string]cty.Value{"in": cty.StringVal("vm.new"), "content": cty.StringVal("vm.dev")})
	bare.Uses = []spec.Address{data}
	want := map[spec.Address]state.Record{data: disk, renamed: user, note: inside, webA: bare}
	if d := diff(want, read(t, f).Records); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
}
