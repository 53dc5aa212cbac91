package state

import (
	"context"
	"fmt"
	"strings"

	"vmctl/spec"
)

// SettingPrefix begins the paths of the digests of a provider's settings in a record.
const SettingPrefix = "provider."

// holds reports whether a record has a value at a path of a digest.
func (r Record) holds(path string) bool {
	if setting, is := strings.CutPrefix(path, SettingPrefix); is {
		return spec.Has(r.Settings, setting)
	}
	return spec.Has(r.Values, path)
}

// exposes reports whether s holds a value of which now has only a digest: it became sensitive since.
func (s *Snapshot) exposes(now *Snapshot) bool {
	byID := map[string]Record{}
	for address, r := range now.Records {
		if len(r.Digests) == 0 {
			continue
		}
		if len(byID) == 0 {
			for _, old := range s.Records {
				byID[old.ID] = old
			}
		}
		for path := range r.Digests {
			if s.Records[address].holds(path) || byID[r.ID].holds(path) {
				return true
			}
		}
	}
	return false
}

// withholds reports whether the stored snapshot holds a value of which s has only a digest.
func (j *journal) withholds(s *Snapshot) (bool, error) {
	if j.stored == nil || !s.hasDigests() {
		return false, nil
	}
	stored, _, err := j.decodeSnapshot(j.stored)
	if err != nil {
		return false, err
	}
	return stored.exposes(s), nil
}

func (s *Snapshot) hasDigests() bool {
	for _, r := range s.Records {
		if len(r.Digests) > 0 {
			return true
		}
	}
	return false
}

// storeAlone writes a snapshot and no copy of the one before it: the backup is the new snapshot, too. It removes the journal
// of the backup and the snapshots of older formats. If it is cut short, the state is as before, or as s says.
func (j *journal) storeAlone(s *Snapshot) error {
	data, err := j.encodeSnapshot(s)
	if err != nil {
		return err
	}
	if err := j.lease.Put(backupName, data); err != nil {
		return err
	}
	names := []string{backupJournalName}
	for format := 1; format < j.formats().newest; format++ {
		names = append(names, oldFormatName(format))
	}
	for _, name := range names {
		if err := j.lease.Remove(name); err != nil {
			return fmt.Errorf("remove a copy of values that became sensitive: %w", err)
		}
	}
	if err := j.lease.Put(snapshotName, data); err != nil {
		return err
	}
	j.stored, j.storedIn, j.alone = data, j.present(), true
	return nil
}

// isAlone reports whether the backup is the snapshot itself, so that no journal leads from one to the other.
func (d documents) isAlone(ctx context.Context, s *Snapshot) bool {
	data, err := d.backend.Get(ctx, backupName)
	if err != nil {
		return false
	}
	backup, _, err := d.decodeSnapshot(data)
	return err == nil && backup.Serial == s.Serial
}
