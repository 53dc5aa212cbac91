package state_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"vmctl/condition"
	"vmctl/spec"
	"vmctl/state"
)

// A build without conditions wrote "ready" into its records and its journal. These files are never written
// anew: every later build reads "ready" as the condition that the VM was ready.
func TestReadyOfEarlierBuildsIsACondition(t *testing.T) {
	f := folder(t)
	text := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "ready", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	check := func(where string, r state.Record) {
		t.Helper()
		want := condition.Set{{
			Report:     condition.Report{Type: condition.SSHReady, Status: condition.True, Reason: condition.Ready},
			Generation: 1, Producer: "libvirt",
		}}
		if d := diff(want, r.Conditions); d != "" {
			t.Errorf("%s (-want +got):\n%s", where, d)
		}
	}
	place(t, f, "state.json", text("state.json"))
	place(t, f, "journal-1.ndjson", text("journal-1.ndjson"))
	old := spec.Address{Kind: spec.VM, Name: "old"}
	check("of a snapshot", read(t, f).Records[dev])
	check("of a journal", read(t, f).Records[old])

	closeIt(t, open(t, f))
	if now := file(t, f, "state.json"); strings.Contains(now, `"ready":true`) || strings.Count(now, `"conditions":{"ssh.ready":{"status":"true","reason":"Ready"}}`) != 2 {
		t.Errorf("written again: %s", now)
	}
	check("of a snapshot that was written again", read(t, f).Records[dev])
}

// A status that no build writes is no condition: nothing is concluded from it.
func TestUnknownStatusIsAnError(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	r := record("dev", 1<<30)
	r.Conditions = condition.Set{{Report: condition.Report{Type: "ssh.ready", Status: "perhaps"}, Generation: 1, Producer: "libvirt"}}
	err := j.Append(t.Context(), state.Entry{Run: "r1", Kind: state.Note, Op: "test", Address: dev, Put: &r})
	if err == nil || !strings.Contains(err.Error(), `its condition ssh.ready has the unknown status "perhaps"`) {
		t.Errorf("append: %v", err)
	}
	closeIt(t, j)
}

// row X06: every condition comes back from a file as it went in.
func TestConditionsRoundTrip(t *testing.T) {
	conditions := rapid.Custom(func(t *rapid.T) condition.Condition {
		return condition.Condition{
			Report: condition.Report{
				Type:   rapid.SampledFrom([]string{"ssh.ready", "engine.ready", "kubernetes.ready"}).Draw(t, "type"),
				Status: rapid.SampledFrom([]condition.Status{condition.True, condition.False, condition.Unknown, condition.NotApplicable}).Draw(t, "status"),
				Reason: rapid.SampledFrom([]string{"", "Stopped"}).Draw(t, "reason"), Message: rapid.SampledFrom([]string{"", "it is off"}).Draw(t, "message"),
				Terminal: rapid.Bool().Draw(t, "terminal"),
			},
			Generation: rapid.Uint64Range(0, 3).Draw(t, "generation"), Producer: rapid.SampledFrom([]string{"libvirt", "docker"}).Draw(t, "producer"),
			Since: time.Date(2026, 3, 4, 5, 6, rapid.IntRange(0, 59).Draw(t, "second"), 0, time.UTC),
		}
	})
	f := folder(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := record("dev", 1<<30)
		r.Generation, r.Conditions = rapid.Uint64Range(0, 3).Draw(rt, "generation of the record"), nil
		for _, c := range rapid.SliceOfN(conditions, 0, 4).Draw(rt, "conditions") {
			r.Conditions = r.Conditions.With(c.Report, condition.Stamp{Generation: c.Generation, At: c.Since, Producer: c.Producer})
		}
		j := open(t, f)
		appendTo(t, j, state.Entry{Run: "r1", Kind: state.Note, Op: "test", Address: dev, Put: &r})
		beside := read(t, f).Records[dev]
		closeIt(t, j)
		for where, got := range map[string]state.Record{"in the journal": beside, "in the snapshot": read(t, f).Records[dev]} {
			if d := diff(r.Conditions, got.Conditions); d != "" {
				rt.Fatalf("%s (-want +got):\n%s", where, d)
			}
		}
	})
}

// The conditions of a VM that is ready take few bytes of its record.
func TestConditionsAreSmall(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	with := record("dev", 1<<30)
	without := with
	without.Conditions, without.Spec = nil, ""
	webA := spec.Address{Kind: spec.VM, Name: "web"}
	appendTo(t, j, state.Entry{Run: "r1", Kind: state.Note, Op: "test", Address: dev, Put: &with},
		state.Entry{Run: "r1", Kind: state.Note, Op: "test", Address: webA, Put: &without})
	closeIt(t, j)
	size := map[string]int{}
	for line := range bytes.Lines([]byte(file(t, f, "state.json"))) {
		if address, text, ok := bytes.Cut(bytes.TrimRight(line, ",\n"), []byte(":{")); ok && bytes.HasPrefix(address, []byte(`"vm.`)) {
			if !json.Valid(append([]byte("{"), text...)) {
				t.Fatalf("not a record: %s", line)
			}
			size[string(address)] = len(text)
		}
	}
	if more := size[`"vm.dev"`] - size[`"vm.web"`]; more > 130 || more <= 0 {
		t.Errorf("conditions and the digest of the spec take %d bytes of %d", more, size[`"vm.dev"`])
	}
}
