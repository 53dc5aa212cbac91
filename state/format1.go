package state

import (
	"encoding/json"
	"fmt"
)

// Format 1 wrote each value with its type, and the provider, its settings and the policy into
// each record: {"type":…,"value":…} becomes the value alone.

type snapshot1 struct {
	Format      int                `json:"format"`
	Version     string             `json:"vmctl_version"`
	ID          string             `json:"id"`
	Project     string             `json:"project"`
	Serial      uint64             `json:"serial"`
	Records     map[string]record1 `json:"records"`
	Forgotten   json.RawMessage    `json:"forgotten,omitempty"`
	Interrupted []entry1           `json:"interrupted"`
}

type value1 struct {
	Type  json.RawMessage `json:"type"`
	Value json.RawMessage `json:"value"`
}

func (v *value1) text() (json.RawMessage, error) {
	switch {
	case v == nil:
		return nil, nil
	case v.Type == nil || v.Value == nil:
		return nil, fmt.Errorf("a value without its type or content")
	default:
		return v.Value, nil
	}
}

type provider1 struct {
	Type string `json:"type"`
	Name string `json:"name"`
	Key  string `json:"key,omitempty"`
}

type record1 struct {
	Kind     string    `json:"kind"`
	Provider provider1 `json:"provider"`
	Settings *value1   `json:"settings,omitempty"`
	Values   *value1   `json:"values,omitempty"`
	Policy   *value1   `json:"policy,omitempty"`
	record1Plain
}

// record1Plain are the fields that format 2 has, too.
type record1Plain struct {
	ID         json.RawMessage `json:"id,omitempty"`
	Name       json.RawMessage `json:"name,omitempty"`
	Generation json.RawMessage `json:"generation,omitempty"`
	Starts     json.RawMessage `json:"starts,omitempty"`
	Replaced   json.RawMessage `json:"replaced,omitempty"`
	Digests    json.RawMessage `json:"digests,omitempty"`
	Uses       json.RawMessage `json:"uses,omitempty"`
	Inside     json.RawMessage `json:"inside,omitempty"`
	LastStop   json.RawMessage `json:"last_stop,omitempty"`
	Ready      json.RawMessage `json:"ready,omitempty"`
	Reserved   json.RawMessage `json:"reserved,omitempty"`
	Was        json.RawMessage `json:"was,omitempty"`
}

// record2 is a record of format 2.
type record2 struct {
	Provider string          `json:"provider,omitempty"`
	Policy   string          `json:"policy,omitempty"`
	Values   json.RawMessage `json:"values,omitempty"`
	record1Plain
}

// upgraded returns the record in format 2. The texts that it shares go into t.
func (r record1) upgraded(t tables) (record2, error) {
	next := record2{record1Plain: r.record1Plain}
	settings, err := r.Settings.text()
	if err != nil {
		return next, err
	}
	policy, err := r.Policy.text()
	if err != nil {
		return next, err
	}
	if next.Values, err = r.Values.text(); err != nil {
		return next, err
	}
	provider, err := encode(providerFile{Type: r.Provider.Type, Name: r.Provider.Name, Key: r.Provider.Key, Settings: settings})
	if err != nil {
		return next, err
	}
	next.Provider = put(t.Providers, provider)
	if policy != nil {
		if policy, err = encode(policy); err != nil { // without the blanks of a file for people
			return next, err
		}
		next.Policy = put(t.Policies, policy)
	}
	return next, nil
}

func upgradeSnapshot1(data []byte) ([]byte, error) {
	var old snapshot1
	if err := decode(data, &old); err != nil {
		return nil, err
	}
	next := struct {
		Format  int    `json:"format"`
		Version string `json:"vmctl_version"`
		ID      string `json:"id"`
		Project string `json:"project"`
		Serial  uint64 `json:"serial"`
		tables
		Records     map[string]record2 `json:"records"`
		Forgotten   json.RawMessage    `json:"forgotten,omitempty"`
		Interrupted []entry2           `json:"interrupted"`
	}{2, old.Version, old.ID, old.Project, old.Serial, newTables(), map[string]record2{}, old.Forgotten, nil}
	for address, r := range old.Records {
		var err error
		if next.Records[address], err = r.upgraded(next.tables); err != nil {
			return nil, fmt.Errorf("the record of %s: %w", address, err)
		}
	}
	for _, e := range old.Interrupted {
		upgraded, err := e.upgraded()
		if err != nil {
			return nil, err
		}
		next.Interrupted = append(next.Interrupted, upgraded)
	}
	return encode(next)
}

// entry1 is an entry of format 1. Format 2 has all of its fields but for the record.
type entry1 struct {
	Entry
	Put *record1 `json:"put,omitempty"`
}

type entry2 struct {
	Entry
	Put *record2 `json:"put,omitempty"`
	tables
}

func (e entry1) upgraded() (entry2, error) {
	next := entry2{Entry: e.Entry, tables: newTables()}
	if e.Put == nil {
		return next, nil
	}
	record, err := e.Put.upgraded(next.tables)
	next.Put = &record
	return next, err
}

func upgradeEntry1(data []byte) ([]byte, error) {
	var old entry1
	if err := decode(data, &old); err != nil {
		return nil, err
	}
	next, err := old.upgraded()
	if err != nil {
		return nil, err
	}
	return encode(next)
}
