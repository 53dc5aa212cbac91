package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// RandomEdit is an edit of a spec, for tests that carry it out by other means.
type RandomEdit struct {
	Before, After string      // spec files
	Moves         [][2]string // of records, in between: `state mv`
	Addresses     []string    // of VMs and disks in After
	Removed       []string    // addresses that After lets go of
	Classes       []string    // of edits
}

// Draw draws a spec and some edits of it. Both spec files begin with a header.
func Draw(t *rapid.T, header string) RandomEdit {
	d := &drawing{t: t, m: newModel()}
	d.base()
	out := RandomEdit{Before: d.m.hcl(header)}
	recorded := d.m.instances()
	d.edits(1 + below(t, 3, "edits"))
	out.After, out.Moves, out.Removed, out.Classes = d.m.hcl(header), d.moves, d.m.removed, d.classes
	out.Moves = slices.DeleteFunc(out.Moves, func(m [2]string) bool { // there has to be something to move, and room for it
		_, from := recorded[m[0]]
		_, to := recorded[m[1]]
		return !from || to
	})
	out.Addresses = slices.Collect(maps.Keys(d.m.instances()))
	for label := range d.m.disks {
		out.Addresses = append(out.Addresses, "disk."+label)
	}
	slices.Sort(out.Addresses)
	return out
}

// String returns the edit as text for the report of a failure.
func (d RandomEdit) String() string {
	return fmt.Sprintf("from\n%s\nto\n%s\nafter moving %v", d.Before, strings.TrimSpace(d.After), d.Moves)
}
