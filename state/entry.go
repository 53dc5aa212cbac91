package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// lineFile is one line of a journal. The sum covers the bytes of e as they stand.
type lineFile struct {
	E   json.RawMessage `json:"e"`
	Sum string          `json:"sum"`
}

var errTornLine = errors.New("the line is not whole: its checksum does not match")

func sum(e []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(e, crc32.MakeTable(crc32.Castagnoli)))
}

// entryFile is an Entry in a file, with the shared texts of its record that no earlier line
// contains.
type entryFile struct {
	Entry
	Put *recordFile `json:"put,omitempty"`
	tables
}

// entry returns e as it is in a file. The shared texts of its record go into the writer's tables.
func (w *writer) entry(e Entry) (entryFile, error) {
	f := entryFile{Entry: e}
	if e.Put == nil {
		return f, nil
	}
	record, err := w.record(*e.Put)
	f.Put = &record
	return f, err
}

// entry reads an entry, and keeps its shared texts for later entries.
func (r *reader) entry(f entryFile) (Entry, error) {
	e := f.Entry
	r.take(f.tables)
	if f.Put == nil {
		return e, e.check()
	}
	record, err := r.record(e.Address, *f.Put)
	if err != nil {
		return e, fmt.Errorf("the record of %s: %w", e.Address, err)
	}
	e.Put = &record
	return e, e.check()
}

// encodeLine returns e as a line that ends with a newline, and the body of the line, which holds the
// entry. The line contains the shared texts that defined lacks, and encodeLine adds them to defined.
func encodeLine(e Entry, defined tables) (line, body []byte, err error) {
	w := newWriter()
	f, err := w.entry(e)
	if err != nil {
		return nil, nil, err
	}
	f.tables = w.without(defined)
	defined.take(f.tables)
	if body, err = encode(f); err != nil {
		return nil, nil, err
	}
	return fmt.Appendf(nil, `{"e":%s,"sum":"%s"}`+"\n", body, sum(body)), body, nil
}

// decodeLine is errTornLine where the line was not written whole or was changed
// afterwards, and another error where it was written wrong.
func (r *reader) decodeLine(text []byte, upgrade func([]byte) ([]byte, error)) (Entry, error) {
	body, ended := bytes.CutSuffix(text, []byte("\n"))
	var line lineFile
	if err := decode(body, &line); !ended || err != nil || line.Sum != sum(line.E) {
		return Entry{}, errTornLine
	}
	upgraded, err := upgrade(line.E)
	if err != nil {
		return Entry{}, err
	}
	return r.decodeEntry(upgraded)
}

// decodeEntry reads the body of a line.
func (r *reader) decodeEntry(body []byte) (Entry, error) {
	var f entryFile
	if err := decode(body, &f); err != nil {
		return Entry{}, err
	}
	return r.entry(f)
}

// decodeJournal returns the entries of a journal that continues a snapshot, as far as
// they can be understood. A torn last line was never
// acknowledged to whoever appended it: it is dropped, and note says so. Anything
// else that is wrong is a *CorruptError.
func (d documents) decodeJournal(j journalText, in encoding) (entries []Entry, note string, err error) {
	path := d.backend.Path(j.name)
	upgrade := func(e []byte) ([]byte, error) { return d.formats().entry(in.format, e) }
	lines := bytes.SplitAfter(j.data, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	r := newReader(d.types(), in.shapes)
	for i, line := range lines {
		e, err := r.decodeLine(line, upgrade)
		switch {
		case errors.Is(err, errTornLine) && i == len(lines)-1:
			return entries, fmt.Sprintf("%s: line %d, the last, was not written whole and was dropped", path, i+1), nil
		case err == nil && e.Serial != j.serial:
			err = fmt.Errorf("it belongs to the journal of snapshot %d", e.Serial)
		case err == nil && e.Seq != uint64(i)+1:
			err = fmt.Errorf("it is entry %d, and entry %d is missing", e.Seq, i+1)
		}
		if err != nil {
			return entries, "", d.corrupt(CorruptError{Path: path, Line: i + 1, Err: err})
		}
		entries = append(entries, e)
	}
	return entries, "", nil
}
