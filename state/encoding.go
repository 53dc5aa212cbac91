package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"vmctl/spec"
)

// snapshotFile is the content of state.json. Equal snapshots have equal bytes: maps are sorted by
// their keys' text.
type snapshotFile struct {
	Format      int                     `json:"format"`
	Version     string                  `json:"vmctl_version"`
	ID          string                  `json:"id"`
	Project     string                  `json:"project"`
	Serial      uint64                  `json:"serial"`
	Records     map[spec.Address]Record `json:"records"`
	Forgotten   map[string]spec.Address `json:"forgotten"`
	Interrupted []Entry                 `json:"interrupted"`
}

// recordFile is a Record in a file.
type recordFile struct {
	Kind       spec.Kind         `json:"kind"`
	Provider   providerFile      `json:"provider"`
	Settings   *value            `json:"settings,omitempty"`
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Generation uint64            `json:"generation"`
	Starts     int               `json:"starts"`
	Replaced   int               `json:"replaced"`
	Values     *value            `json:"values,omitempty"`
	Digests    map[string]string `json:"digests,omitempty"`
	Policy     *value            `json:"policy,omitempty"`
	Uses       []spec.Address    `json:"uses,omitempty"`
	Inside     spec.Address      `json:"inside,omitzero"`
	LastStop   string            `json:"last_stop,omitempty"`
	Ready      bool              `json:"ready,omitempty"`
	Reserved   bool              `json:"reserved,omitempty"`
	Was        []spec.Address    `json:"was,omitempty"`
}

type providerFile struct {
	Type string `json:"type"`
	Name string `json:"name"`
	Key  string `json:"key,omitempty"`
}

// MarshalJSON implements json.Marshaler. A record with a value that is marked or
// not wholly known is an error.
func (r Record) MarshalJSON() ([]byte, error) {
	return encode(recordFile{
		Kind: r.Kind, Provider: providerFile(r.Provider), Settings: newValue(r.Settings),
		ID: r.ID, Name: r.Name, Generation: r.Generation, Starts: r.Starts, Replaced: r.Replaced,
		Values: newValue(r.Values), Digests: r.Digests, Policy: newValue(r.Policy),
		Uses: r.Uses, Inside: r.Inside, LastStop: r.LastStop, Ready: r.Ready, Reserved: r.Reserved, Was: r.Was,
	})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Record) UnmarshalJSON(data []byte) error {
	var f recordFile
	if err := decode(data, &f); err != nil {
		return err
	}
	*r = Record{
		Kind: f.Kind, Provider: spec.ProviderRef(f.Provider), Settings: f.Settings.ctyValue(),
		ID: f.ID, Name: f.Name, Generation: f.Generation, Starts: f.Starts, Replaced: f.Replaced,
		Values: f.Values.ctyValue(), Digests: f.Digests, Policy: f.Policy.ctyValue(),
		Uses: f.Uses, Inside: f.Inside, LastStop: f.LastStop, Ready: f.Ready, Reserved: f.Reserved, Was: f.Was,
	}
	return nil
}

// encodeSnapshot returns the bytes of state.json.
func (f Folder) encodeSnapshot(s *Snapshot) ([]byte, error) {
	data, err := encode(snapshotFile{
		Format: f.formats().newest, Version: f.Version, ID: f.ID, Project: f.Project,
		Serial: s.Serial, Records: s.Records, Forgotten: s.Forgotten, Interrupted: append([]Entry{}, s.Interrupted...),
	})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// Sum returns the SHA-256, in hex, of the encoded snapshot. The sum of a snapshot with the journal
// that continues it is the sum of the snapshot into which both are folded.
func (s *Snapshot) Sum() (string, error) {
	data, err := encode(snapshotFile{
		Format: s.Format, ID: s.ID, Records: s.Records, Forgotten: s.Forgotten, Interrupted: s.Interrupted,
	})
	if err != nil {
		return "", fmt.Errorf("sum up the state: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// decodeSnapshot reads the bytes of state.json.
func (f Folder) decodeSnapshot(data []byte) (*Snapshot, error) {
	head, err := readHeader(data)
	switch known := f.formats(); {
	case err != nil:
		return nil, f.corruptSnapshot(err)
	case *head.Format > known.newest:
		return nil, &NewerError{Path: f.statePath(), Format: *head.Format, Version: head.Version}
	default:
		if data, err = known.snapshot(*head.Format, data); err != nil {
			return nil, f.corruptSnapshot(err)
		}
	}
	var file snapshotFile
	if err := decode(data, &file); err != nil {
		return nil, f.corruptSnapshot(err)
	}
	if file.ID != f.ID {
		return nil, &MismatchError{Path: f.statePath(), HasID: file.ID, HasProject: file.Project, WantsID: f.ID, WantProject: f.Project}
	}
	for _, e := range file.Interrupted {
		if err := e.check(); err != nil {
			return nil, f.corruptSnapshot(err)
		}
	}
	s := f.empty()
	s.Serial, s.Project, s.Interrupted = file.Serial, file.Project, file.Interrupted
	if file.Records != nil {
		s.Records = file.Records
	}
	if file.Forgotten != nil {
		s.Forgotten = file.Forgotten
	}
	return s, nil
}

// encode returns v as compact JSON, without the escapes that only HTML needs.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, plainError(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// plainError strips the names of Go types, which mean nothing to a user.
func plainError(err error) error {
	var marshaler *json.MarshalerError
	for errors.As(err, &marshaler) {
		err = marshaler.Err
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%w, at byte %d", err, syntax.Offset)
	}
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return fmt.Errorf("unexpected %s, at byte %d", mistyped.Value, mistyped.Offset)
	}
	return err
}

// decode reads the one JSON value in data. A field that v does not have is an error: writing v
// again would lose it.
func decode(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return plainError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows the end of the content, at byte %d", dec.InputOffset())
	}
	return nil
}

// lineFile is one line of a journal. The sum covers the bytes of e as they stand.
type lineFile struct {
	E   json.RawMessage `json:"e"`
	Sum string          `json:"sum"`
}

var errTornLine = errors.New("the line is not whole: its checksum does not match")

func sum(e []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(e, crc32.MakeTable(crc32.Castagnoli)))
}

// encodeLine returns e as a line, newline included.
func encodeLine(e Entry) ([]byte, error) {
	body, err := encode(e)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"e":%s,"sum":"%s"}`+"\n", body, sum(body)), nil
}

// decodeLine returns the entry of a line. It fails with errTornLine if the line is incomplete or
// was changed later, and with another error if its content is invalid.
func decodeLine(text []byte, upgrade func([]byte) ([]byte, error)) (Entry, error) {
	body, ended := bytes.CutSuffix(text, []byte("\n"))
	var line lineFile
	if err := decode(body, &line); !ended || err != nil || line.Sum != sum(line.E) {
		return Entry{}, errTornLine
	}
	upgraded, err := upgrade(line.E)
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	if err := decode(upgraded, &e); err != nil {
		return Entry{}, err
	}
	return e, e.check()
}

// noUpgrade upgrades nothing.
func noUpgrade(e []byte) ([]byte, error) { return e, nil }

// decodeJournal returns the entries of a journal, up to the first that it cannot decode; format is
// that of the snapshot that the journal continues. It drops a torn last line, since Append never
// reported it as durable, and describes it in note. Any other damage is a *CorruptError.
func (f Folder) decodeJournal(j journalFile, format int) (entries []Entry, note string, err error) {
	path := f.journalPath(j.serial)
	upgrade := func(e []byte) ([]byte, error) { return f.formats().entry(format, e) }
	lines := bytes.SplitAfter(j.data, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	for i, line := range lines {
		e, err := decodeLine(line, upgrade)
		switch {
		case errors.Is(err, errTornLine) && i == len(lines)-1:
			return entries, fmt.Sprintf("%s: line %d, the last, was not written whole and was dropped", path, i+1), nil
		case err == nil && e.Serial != j.serial:
			err = fmt.Errorf("it belongs to the journal of snapshot %d", e.Serial)
		case err == nil && e.Seq != uint64(i)+1:
			err = fmt.Errorf("it is entry %d, and entry %d is missing", e.Seq, i+1)
		}
		if err != nil {
			return entries, "", f.corrupt(CorruptError{Path: path, Line: i + 1, Err: err})
		}
		entries = append(entries, e)
	}
	return entries, "", nil
}
