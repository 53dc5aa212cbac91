package state_test

import (
	"errors"
	"testing"

	"vmctl/state"
)

// FuzzRead puts any bytes in the place of the files. They are either understood,
// and then opening and closing keeps what they say, or refused.
func FuzzRead(f *testing.F) {
	f.Add("", "")
	f.Add(`{"format":1,"vmctl_version":"","id":"k7m2qd9x4r","project":"p","serial":1,"records":{},"forgotten":{},"interrupted":[]}`, "")
	f.Add(`{"format":1,"id":"k7m2qd9x4r","serial":1,"records":{"vm.a":{"kind":"vm","values":{"type":["object",{"a":"number"}],"value":{"a":1}}}}}`, `{"e":{},"sum":"00000000"}`+"\n")
	f.Add(`{"format":1,"id":"k7m2qd9x4r","serial":1,"records":{"vm.a":{"values":{"type":["set",["tuple",["bool","dynamic"]]],"value":[[true,{"type":"string","value":"x"}]]}}}}`, "\x00")
	f.Add(`{"format":1,"id":"k7m2qd9x4r","serial":1,"interrupted":[{"kind":"begin","put":{"policy":{"type":"dynamic","value":null}}}]}`, "{}")
	f.Add(string(state.Summed([]byte(`{"sum":"00000000","format":2,"id":"k7m2qd9x4r","serial":1,"records":{"vm.a":{"values":{"a":1,"b":[{}],"list":"x"}}}}`))), "")
	f.Fuzz(func(t *testing.T, snapshot, journal string) {
		s := folder(t)
		place(t, s, "state.json", snapshot)
		place(t, s, "journal-1.ndjson", journal)
		before, err := s.Read(t.Context())
		if err != nil {
			var corrupt *state.CorruptError
			var newer *state.NewerError
			var mismatch *state.MismatchError
			if !errors.As(err, &corrupt) && !errors.As(err, &newer) && !errors.As(err, &mismatch) {
				t.Fatal(err)
			}
			if again := refused(t, s); again.Error() != err.Error() {
				t.Errorf("refused with %q at first, then with %q", err, again)
			}
			return
		}
		j := open(t, s)
		appendTo(t, j, state.Entry{Run: "r", Kind: state.Note, Op: "looked"})
		closeIt(t, j)
		after := read(t, s)
		before.Serial, before.Notes, before.Project = after.Serial, nil, after.Project
		if d := diff(before, after); d != "" {
			t.Errorf("what was understood changed (-before +after):\n%s", d)
		}
	})
}
