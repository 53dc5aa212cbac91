package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"vmctl/spec"
)

// encoding says how a snapshot, and the journal that continues it, were written.
type encoding struct {
	format  int
	version string            // of the vmctl that wrote it
	shapes  map[spec.Kind]int // the version of each kind that the writer knew; nil: all have version 1
}

// present returns the encoding of this build.
func (d documents) present() encoding {
	return encoding{d.formats().newest, d.Version, d.types().shapes()}
}

func (e encoding) equal(other encoding) bool {
	return e.format == other.format && maps.Equal(e.shapes, other.shapes)
}

// valuesUpgrade turns the recorded values of one version of a kind's shape into those of the next
// one.
type valuesUpgrade func(values map[string]json.RawMessage) error

// upgrade turns values that were read into those of this build's shape of their kind.
func (r *reader) upgrade(kind spec.Kind, values map[string]json.RawMessage) error {
	version, known := r.shapes[kind]
	if !known {
		version = 1
	}
	for newest := r.newest[kind]; version < newest; version++ {
		next, ok := r.types.upgrades(kind)[version]
		if !ok {
			return fmt.Errorf("they have version %d of the shape of %s, which this vmctl cannot read any more", version, kind)
		}
		if err := next(values); err != nil {
			return fmt.Errorf("turn version %d of the shape of %s into %d: %w", version, kind, version+1, err)
		}
	}
	return nil
}

// writable fails with a *NewerError if records of a kind were written with a newer version of its
// shape, or if this build does not know their kind: it would write values that it cannot understand.
func (d documents) writable(s *Snapshot, in encoding) error {
	known := d.types().shapes()
	for _, a := range slices.SortedFunc(maps.Keys(s.Records), spec.Address.Compare) {
		if in.shapes[a.Kind] > known[a.Kind] {
			return &NewerError{
				Path: d.backend.Path(snapshotName), Version: in.version, Kind: a.Kind, Shape: in.shapes[a.Kind], KnownShape: known[a.Kind],
			}
		}
	}
	return nil
}
