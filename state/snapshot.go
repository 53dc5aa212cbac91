package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"vmctl/spec"
)

// snapshotFile is state.json without its checksum. Its bytes depend only on what it says: maps
// are sorted by their keys' text, and each record has a line of its own.
type snapshotFile struct {
	Format  int    `json:"format"`
	Version string `json:"vmctl_version"`
	ID      string `json:"id"`
	Project string `json:"project"`
	Serial  uint64 `json:"serial"`
	// Shapes holds the version of the shape of each kind that the writer knew.
	Shapes map[spec.Kind]int `json:"shapes,omitempty"`
	tables
	Records     map[spec.Address]recordFile `json:"records"`
	Forgotten   map[string]spec.Address     `json:"forgotten"`
	Interrupted []entryFile                 `json:"interrupted"`
}

// The first bytes of state.json: the checksum of all that follows it.
const (
	sumBegins = `{"sum":"`
	sumEnds   = "\",\n"
	sumChars  = 8
)

// withSum puts the checksum before the members of a JSON object, which begins with a brace.
func withSum(object []byte) []byte {
	rest := append([]byte(sumEnds), bytes.TrimPrefix(object, []byte("{"))...)
	return append(append([]byte(sumBegins), sum(rest)...), rest...)
}

// checkSum fails if the bytes of a snapshot are not as they were written.
func checkSum(data []byte) error {
	rest, begins := bytes.CutPrefix(data, []byte(sumBegins))
	if !begins || len(rest) < sumChars || string(rest[:sumChars]) != sum(rest[sumChars:]) {
		return errors.New("its checksum does not match: it was changed after vmctl wrote it")
	}
	return nil
}

// encodeSnapshot returns the bytes of state.json.
func (d documents) encodeSnapshot(s *Snapshot) ([]byte, error) {
	file, err := fileOf(s)
	if err != nil {
		return nil, err
	}
	file.Format, file.Version, file.ID, file.Project, file.Shapes = d.formats().newest, d.Version, d.ID, d.Project, d.types().shapes()
	data, err := file.lines()
	if err != nil {
		return nil, err
	}
	return withSum(data), nil
}

// fileOf returns the records and entries of s as they are in a file.
func fileOf(s *Snapshot) (snapshotFile, error) {
	w := newWriter()
	file := snapshotFile{Serial: s.Serial, tables: w.tables, Records: make(map[spec.Address]recordFile, len(s.Records)), Forgotten: s.Forgotten}
	for address, r := range s.Records {
		written, err := w.record(r)
		if err != nil {
			return file, fmt.Errorf("the record of %s: %w", address, err)
		}
		file.Records[address] = written
	}
	file.Interrupted = make([]entryFile, 0, len(s.Interrupted))
	for _, e := range s.Interrupted {
		written, err := w.entry(e)
		if err != nil {
			return file, err
		}
		file.Interrupted = append(file.Interrupted, written)
	}
	return file, nil
}

// lines returns the file as JSON: each record and each text of the tables has a line of its own.
func (s snapshotFile) lines() ([]byte, error) {
	sections := []struct {
		name  string
		texts map[string]any
	}{{"providers", texts(s.Providers)}, {"policies", texts(s.Policies)}, {"records", map[string]any{}}}
	for address, r := range s.Records {
		sections[2].texts[address.String()] = r
	}
	s.tables, s.Records = tables{}, nil
	head, err := encode(s)
	if err != nil {
		return nil, err
	}
	before, after, found := bytes.Cut(head, []byte(`"records":null`))
	if !found {
		return nil, errors.New("the state has no place for its records")
	}
	text := slices.Clip(before)
	for i, section := range sections {
		if i > 0 {
			text = append(text, ',')
		}
		if text, err = appendSection(text, section.name, section.texts); err != nil {
			return nil, err
		}
	}
	return append(append(text, after...), '\n'), nil
}

func texts(table map[string]json.RawMessage) map[string]any {
	all := make(map[string]any, len(table))
	for digest, text := range table {
		all[digest] = text
	}
	return all
}

// appendSection appends a member that is an object with a line for each of its own members.
func appendSection(text []byte, name string, members map[string]any) ([]byte, error) {
	text = append(append(append(text, "\n\""...), name...), "\":{"...)
	separator := "\n"
	for _, key := range slices.Sorted(maps.Keys(members)) {
		quoted, err := encode(key)
		if err != nil {
			return nil, err
		}
		member, err := encode(members[key])
		if err != nil {
			return nil, err
		}
		text = append(append(append(append(text, separator...), quoted...), ':'), member...)
		separator = ",\n"
	}
	return append(text, "\n}"...), nil
}

// Sum is the SHA-256, in hex, of what s remembers. A snapshot with the journal that
// continues it has that of the snapshot that comes of both.
func (s *Snapshot) Sum() (string, error) {
	file, err := fileOf(s)
	if err != nil {
		return "", fmt.Errorf("sum up the state: %w", err)
	}
	file.Format, file.ID, file.Serial = s.Format, s.ID, 0
	data, err := file.lines()
	if err != nil {
		return "", fmt.Errorf("sum up the state: %w", err)
	}
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:]), nil
}

// decodeSnapshot reads the bytes of state.json, and returns how they were written.
func (d documents) decodeSnapshot(data []byte) (*Snapshot, encoding, error) {
	head, err := readHeader(data)
	known := d.formats()
	switch {
	case err != nil:
		return nil, encoding{}, d.corruptSnapshot(err)
	case *head.Format > known.newest:
		return nil, encoding{}, &NewerError{Path: d.backend.Path(snapshotName), Format: *head.Format, Version: head.Version}
	case *head.Format >= summed:
		if err := checkSum(data); err != nil {
			return nil, encoding{}, d.corruptSnapshot(err)
		}
	}
	if data, err = known.snapshot(*head.Format, data); err != nil {
		return nil, encoding{}, d.corruptSnapshot(err)
	}
	file := struct {
		Sum string `json:"sum"`
		snapshotFile
	}{}
	if err := decode(data, &file); err != nil {
		return nil, encoding{}, d.corruptSnapshot(err)
	}
	if file.ID != d.ID {
		return nil, encoding{}, &MismatchError{Path: d.backend.Path(snapshotName), HasID: file.ID, HasProject: file.Project, WantsID: d.ID, WantProject: d.Project}
	}
	s, err := d.snapshotOf(file.snapshotFile)
	if err != nil {
		return nil, encoding{}, d.corruptSnapshot(err)
	}
	return s, encoding{*head.Format, file.Version, file.Shapes}, nil
}

// summed is the first format with a checksum.
const summed = 2

// snapshotOf reads the records and entries of a file.
func (d documents) snapshotOf(file snapshotFile) (*Snapshot, error) {
	s := d.empty()
	s.Serial, s.Project = file.Serial, file.Project
	r := newReader(d.types(), file.Shapes)
	r.take(file.tables)
	for address, written := range file.Records {
		record, err := r.record(address, written)
		if err != nil {
			return nil, fmt.Errorf("the record of %s: %w", address, err)
		}
		s.Records[address] = record
	}
	for _, written := range file.Interrupted {
		e, err := r.entry(written)
		if err != nil {
			return nil, err
		}
		s.Interrupted = append(s.Interrupted, e)
	}
	if file.Forgotten != nil {
		s.Forgotten = file.Forgotten
	}
	return s, nil
}
