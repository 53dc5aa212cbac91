package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Seal summarises a plan and the state that it rests on, small enough to be kept: two plans with
// equal seals do the same to the same objects.
type Seal struct {
	Serial  uint64            `json:"serial"`  // of the state
	State   string            `json:"state"`   // its Sum
	Steps   []string          `json:"steps"`   // in words, in order
	Changes map[string]string `json:"changes"` // SHA-256, by address, of each change that has steps
	Effects map[string]string `json:"effects"` // SHA-256, by address, of the action, the wanted values and the alterations of each of these
	// Reads holds digests of the files that the system of a change reads, such as a module of Terraform, by address and path. Changes
	// covers them; they name what differs.
	Reads map[string]map[string]string `json:"reads,omitempty"`
}

// Seal returns the seal of p, which was made on s. It holds digests of values, and no values. The
// digests of sensitive values are made with a key.
func (p *Plan) Seal(s *state.Snapshot, key state.DigestKey) (Seal, error) {
	remembered, err := s.Sum()
	if err != nil {
		return Seal{}, err
	}
	seal := Seal{Serial: p.Serial, State: remembered, Steps: []string{}, Changes: map[string]string{}, Effects: map[string]string{}}
	for _, s := range p.Steps {
		seal.Steps = append(seal.Steps, s.words())
		c := &p.Changes[s.Change]
		if _, ok := seal.Changes[c.Address.String()]; ok {
			continue
		}
		sum, err := c.sum(key)
		if err != nil {
			return Seal{}, fmt.Errorf("seal the plan of %s: %w", c.Address, err)
		}
		seal.Changes[c.Address.String()] = sum
		seal.addReads(c, key)
		if seal.Effects[c.Address.String()], err = c.effect(key); err != nil {
			return Seal{}, fmt.Errorf("seal the plan of %s: %w", c.Address, err)
		}
	}
	return seal, nil
}

// addReads adds the files that the system of a change reads. Without the key of digests none is named: a file may hold a secret.
func (s *Seal) addReads(c *Change, key state.DigestKey) {
	if c.Preview == nil || len(c.Preview.Reads) == 0 || key.IsZero() {
		return
	}
	if s.Reads == nil {
		s.Reads = map[string]map[string]string{}
	}
	address, files := c.Address.String(), map[string]string{}
	for path, digest := range c.Preview.Reads {
		files[path] = key.Text(address+" "+path, digest)
	}
	s.Reads[address] = files
}

// changedReads names the files that the system of a change reads, and that differ.
func (s Seal) changedReads(now Seal, address string) []string {
	before, after := s.Reads[address], now.Reads[address]
	if before == nil || after == nil {
		return nil
	}
	var all []string
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		_, had := before[path]
		_, has := after[path]
		switch {
		case !had:
			all = append(all, address+": the file "+path+" is new")
		case !has:
			all = append(all, address+": the file "+path+" is gone")
		case before[path] != after[path]:
			all = append(all, address+": the file "+path+" has changed since")
		}
	}
	if len(all) > 0 {
		all = append(all, address+": a plan covers every file below the folder of its module: what writes there while it is planned has to write elsewhere")
	}
	return all
}

func (s Step) words() string {
	text := fmt.Sprintf("%d %s %s %s", s.ID, s.Phase, s.Address, s.Op)
	if len(s.After) > 0 {
		text += fmt.Sprintf(" after %v", s.After)
	}
	return text
}

// Differs returns the differences between s and now in words; nothing: they are the same.
func (s Seal) Differs(now Seal) []string {
	all := s.differsInSteps(now)
	switch {
	case s.State == now.State: // what an earlier run left in its journal may have become a snapshot
	case s.Serial == now.Serial:
		all = append(all, "the state is not what it was")
	default:
		all = append(all, fmt.Sprintf("the state was at serial %d, and is at %d now", s.Serial, now.Serial))
	}
	for _, address := range slices.Sorted(maps.Keys(s.Changes)) {
		if sum, ok := now.Changes[address]; ok && sum != s.Changes[address] {
			all = append(all, address+" is not what it was, or would not become what was planned")
			all = append(all, s.changedReads(now, address)...)
		}
	}
	return all
}

// DiffersInEffect returns, in words, the steps that differ, and the addresses whose change would
// have another effect, as with another value.
func (s Seal) DiffersInEffect(now Seal) []string {
	all := s.differsInSteps(now)
	for _, address := range slices.Sorted(maps.Keys(now.Effects)) {
		if _, planned := s.Changes[address]; planned && now.Effects[address] != s.Effects[address] {
			all = append(all, address+" would not become what was planned, or is not what it was")
		}
	}
	return all
}

func (s Seal) differsInSteps(now Seal) []string {
	if slices.Equal(s.Steps, now.Steps) {
		return nil
	}
	var all []string
	for _, step := range s.Steps {
		if !slices.Contains(now.Steps, step) {
			all = append(all, "was planned, and is not any more: "+step)
		}
	}
	for _, step := range now.Steps {
		if !slices.Contains(s.Steps, step) {
			all = append(all, "was not planned: "+step)
		}
	}
	return all
}

// sealed holds the parts of a change that a seal covers. The fingerprint covers the attributes of
// the object, and leaves out those that change by themselves.
type sealed struct {
	Action                 providers.Action
	Name                   string
	ID, Object             providers.ID
	Fingerprint            string
	Provider               spec.ProviderRef
	Settings, Want, Policy value
	Generation             uint64
	Replaced               int
	Needs                  []spec.Address
	Uses                   map[spec.Address]providers.Used
	Preview                *providers.Preview `json:",omitempty"`
	Found                  []value            `json:",omitempty"` // what the edits that the system of the object has found lead to
}

func (c *Change) sum(key state.DigestKey) (string, error) {
	s := sealed{
		Action: c.Action, Name: c.Name, ID: c.ID, Provider: c.Provider,
		Generation: c.Generation, Replaced: c.Replaced, Needs: c.Needs, Uses: c.Uses, Preview: c.Preview,
	}
	if c.Object != nil {
		s.Object, s.Fingerprint = c.Object.ID, c.Object.Fingerprint
	}
	for _, part := range []struct {
		into *value
		from cty.Value
	}{{&s.Settings, c.Settings}, {&s.Want, c.Change.Want}, {&s.Policy, c.Policy}} {
		var err error
		if *part.into, err = valueOf(part.from, key); err != nil {
			return "", err
		}
	}
	if c.Object != nil {
		for _, e := range c.Object.Edits {
			after, err := valueOf(e.After, key)
			if err != nil {
				return "", err
			}
			s.Found = append(s.Found, after)
		}
	}
	return digest(s)
}

// effect returns a digest of the action and the wanted values of a change, and of what it alters. It covers
// neither the system of the object nor its record.
func (c *Change) effect(key state.DigestKey) (string, error) {
	type edit struct {
		Path          string
		Before, After value
		Applies       providers.Applies
	}
	e := struct {
		Action providers.Action
		Want   value
		Edits  []edit
		Mark   *spec.Address     `json:",omitempty"` // the address in the present mark
		Rekey  providers.Applies `json:",omitempty"`
	}{Action: c.Action}
	if c.Mark != nil {
		e.Mark = &c.Mark.Before
	}
	if c.Rekey != nil {
		e.Rekey = c.Rekey.Applies
	}
	var err error
	if e.Want, err = valueOf(c.Change.Want, key); err != nil {
		return "", err
	}
	for _, was := range c.Edits {
		now := edit{Path: was.Path, Applies: was.Verdict.Applies}
		if now.Before, err = valueOf(was.Before, key); err != nil {
			return "", err
		}
		if now.After, err = valueOf(was.After, key); err != nil {
			return "", err
		}
		e.Edits = append(e.Edits, now)
	}
	return digest(e)
}

func digest(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// value is a value as text, with the paths at which it is unknown.
type value struct {
	Known   json.RawMessage `json:",omitempty"`
	Unknown []string
}

func valueOf(v cty.Value, key state.DigestKey) (value, error) {
	if v == cty.NilVal {
		return value{}, nil
	}
	v = spec.Replaced(v, func(secret cty.Value) cty.Value {
		if !secret.IsWhollyKnown() {
			return secret
		}
		return cty.StringVal(key.Digest("", "seal", secret))
	})
	var text value
	known, err := cty.Transform(v, func(path cty.Path, part cty.Value) (cty.Value, error) {
		if part.IsKnown() {
			return part, nil
		}
		text.Unknown = append(text.Unknown, fmt.Sprintf("%#v", path))
		return cty.NullVal(part.Type()), nil
	})
	if err != nil {
		return value{}, err
	}
	slices.Sort(text.Unknown)
	text.Known, err = ctyjson.Marshal(known, known.Type())
	return text, err
}
