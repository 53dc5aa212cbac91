package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// recordFile is a Record in a file. Its kind is that of its address.
type recordFile struct {
	Provider   string               `json:"provider,omitempty"` // digest of a providerFile
	Policy     string               `json:"policy,omitempty"`   // digest of a policy
	ID         string               `json:"id"`
	Name       string               `json:"name"`
	Generation uint64               `json:"generation,omitempty"`
	Starts     int                  `json:"starts,omitempty"`
	Replaced   int                  `json:"replaced,omitempty"`
	Values     json.RawMessage      `json:"values,omitempty"`
	Digests    map[string]string    `json:"digests,omitempty"`
	Provisions map[string]Provision `json:"provisions,omitempty"`
	Uses       []spec.Address       `json:"uses,omitempty"`
	Inside     spec.Address         `json:"inside,omitzero"`
	LastStop   string               `json:"last_stop,omitempty"`
	LastAction *Action              `json:"last_action,omitempty"`
	Ready      bool                 `json:"ready,omitempty"` // of a build without conditions; never written
	Reserved   bool                 `json:"reserved,omitempty"`
	Found      bool                 `json:"found,omitempty"`
	Was        []spec.Address       `json:"was,omitempty"`
	Spec       string               `json:"spec,omitempty"`

	Conditions map[string]conditionFile `json:"conditions,omitempty"`
}

// providerFile is the provider of a record with its settings.
type providerFile struct {
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	Key      string          `json:"key,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
}

// tables hold the texts that many records share, by their digests.
type tables struct {
	Providers map[string]json.RawMessage `json:"providers,omitempty"`
	Policies  map[string]json.RawMessage `json:"policies,omitempty"`
}

func newTables() tables {
	return tables{Providers: map[string]json.RawMessage{}, Policies: map[string]json.RawMessage{}}
}

// without returns the texts that other lacks.
func (t tables) without(other tables) tables {
	added := newTables()
	for _, pair := range [][3]map[string]json.RawMessage{
		{t.Providers, other.Providers, added.Providers}, {t.Policies, other.Policies, added.Policies},
	} {
		for digest, text := range pair[0] {
			if _, there := pair[1][digest]; !there {
				pair[2][digest] = text
			}
		}
	}
	return added
}

// take adds the texts of other.
func (t tables) take(other tables) {
	maps.Copy(t.Providers, other.Providers)
	maps.Copy(t.Policies, other.Policies)
}

// digestChars is the length of a digest in a table: 64 bits tell any texts of one state apart.
const digestChars = 16

// put adds a text to a table and returns its digest.
func put(table map[string]json.RawMessage, text []byte) string {
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])[:digestChars]
	table[digest] = text
	return digest
}

// Kept holds the JSON of those attributes, settings and policy of a record that this build's
// types cannot represent exactly. Each is written back as it was, unless its value has changed.
type Kept struct {
	values           map[string]kept // by attribute
	settings, policy *kept
}

type kept struct {
	text json.RawMessage
	read cty.Value // cty.NilVal: nothing could be read
}

// Equal reports whether k and other hold the same texts.
func (k Kept) Equal(other Kept) bool {
	same := func(a, b *kept) bool { return a == b || a != nil && b != nil && string(a.text) == string(b.text) }
	return same(k.settings, other.settings) && same(k.policy, other.policy) &&
		maps.EqualFunc(k.values, other.values, func(a, b kept) bool { return same(&a, &b) })
}

// appendValue appends v as JSON to text. If v equals the value that was read from the kept text,
// it appends that text.
func (k *kept) appendValue(text []byte, v cty.Value) ([]byte, error) {
	if k != nil && (v == cty.NilVal) == (k.read == cty.NilVal) && (v == cty.NilVal || v.RawEquals(k.read)) {
		return append(text, k.text...), nil
	}
	return appendPlain(text, v)
}

// writer writes records. It gathers the texts that they share.
type writer struct{ tables }

func newWriter() *writer { return &writer{tables: newTables()} }

// record returns r as it is in a file. A value that is marked or not wholly known is an error.
func (w *writer) record(r Record) (recordFile, error) {
	f, err := w.fileOf(r)
	if err == nil {
		return f, nil
	}
	for _, v := range []cty.Value{r.Values, r.Settings, r.Policy} {
		if v != cty.NilVal {
			if why := checkStorable(v); why != nil {
				return f, why
			}
		}
	}
	return f, err
}

func (w *writer) fileOf(r Record) (recordFile, error) {
	f := recordFile{
		ID: r.ID, Name: r.Name, Generation: r.Generation, Starts: r.Starts, Replaced: r.Replaced, Digests: r.Digests,
		Provisions: r.Provisions, Uses: r.Uses, Inside: r.Inside, LastStop: r.LastStop, LastAction: r.LastAction, Reserved: r.Reserved, Found: r.Found, Was: r.Was, Spec: r.Spec,
		Conditions: conditionsFile(r),
	}
	var err error
	if f.Values, err = r.Kept.appendValues(r.Values); err != nil {
		return f, err
	}
	p := providerFile{Type: r.Provider.Type, Name: r.Provider.Name, Key: r.Provider.Key}
	if r.Settings != cty.NilVal {
		if p.Settings, err = r.Kept.settings.appendValue(nil, r.Settings); err != nil {
			return f, err
		}
	}
	text, err := encode(p)
	if err != nil {
		return f, err
	}
	f.Provider = put(w.Providers, text)
	if r.Policy != cty.NilVal {
		if text, err = r.Kept.policy.appendValue(nil, r.Policy); err != nil {
			return f, err
		}
		f.Policy = put(w.Policies, text)
	}
	return f, nil
}

// appendValues returns the text of the values of a record, nil of cty.NilVal.
func (k Kept) appendValues(v cty.Value) (text []byte, err error) {
	if v == cty.NilVal {
		return nil, nil
	}
	if v.IsMarked() || !v.IsKnown() || v.IsNull() || !v.Type().IsObjectType() || len(k.values) == 0 {
		return appendPlain(nil, v)
	}
	all := v.AsValueMap()
	names := slices.Collect(maps.Keys(all))
	for name, held := range k.values {
		if _, there := all[name]; !there && held.read == cty.NilVal {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	text = append(text, '{')
	for i, name := range names {
		if i > 0 {
			text = append(text, ',')
		}
		if text, err = appendText(text, name); err != nil {
			return nil, err
		}
		text = append(text, ':')
		var held *kept
		if h, there := k.values[name]; there {
			held = &h
		}
		value, there := all[name]
		if !there {
			value = cty.NilVal
		}
		if text, err = held.appendValue(text, value); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

// reader reads records, with the types of this build.
type reader struct {
	tables
	cutter

	types     types
	shapes    map[spec.Kind]int // of what is read
	newest    map[spec.Kind]int // of this build
	values    map[spec.Kind]map[string]*attribute
	providers map[string]readProvider
	policies  map[policyKey]kept
}

type readProvider struct {
	ref      spec.ProviderRef
	settings cty.Value
	kept     *kept
}

type policyKey struct {
	digest string
	kind   spec.Kind
}

func newReader(t types, shapes map[spec.Kind]int) *reader {
	return &reader{
		tables: newTables(), types: t, shapes: shapes, newest: t.shapes(), values: map[spec.Kind]map[string]*attribute{}, providers: map[string]readProvider{}, policies: map[policyKey]kept{},
	}
}

// record reads the record of an address.
func (r *reader) record(a spec.Address, f recordFile) (Record, error) {
	n := Record{
		Kind: a.Kind, ID: f.ID, Name: f.Name, Generation: f.Generation, Starts: f.Starts, Replaced: f.Replaced, Digests: f.Digests,
		Provisions: f.Provisions, Uses: f.Uses, Inside: f.Inside, LastStop: f.LastStop, LastAction: f.LastAction, Reserved: f.Reserved, Found: f.Found, Was: f.Was, Spec: f.Spec,
	}
	p, err := r.provider(f.Provider)
	if err != nil {
		return n, err
	}
	n.Provider, n.Settings, n.Kept.settings = p.ref, p.settings, p.kept
	if n.Conditions, err = n.readConditions(f); err != nil {
		return n, err
	}
	if f.Values != nil {
		if n.Values, n.Kept.values, err = r.readValues(f.Values, a.Kind); err != nil {
			return n, fmt.Errorf("its values: %w", err)
		}
	}
	if f.Policy != "" {
		n.Policy, n.Kept.policy, err = r.policy(policyKey{f.Policy, a.Kind})
	}
	return n, err
}

// attribute is one attribute of a kind. Most records have one of a few values of it, which they share.
type attribute struct {
	of   cty.Type
	read map[string]readValue // by their texts; at most valuesShared of them
}

type readValue struct {
	cty.Value

	whole bool
}

// valuesShared limits the values of an attribute that are remembered: of an ID all are different.
const valuesShared = 64

func (r *reader) attributesOf(kind spec.Kind) map[string]*attribute {
	all, known := r.values[kind]
	if !known {
		all = map[string]*attribute{}
		for name, t := range r.types.values(kind) {
			all[name] = &attribute{of: t, read: map[string]readValue{}}
		}
		r.values[kind] = all
	}
	return all
}

// value reads the value of an attribute as readPlain does.
func (r *reader) value(a *attribute, text []byte) (v cty.Value, whole bool, err error) {
	if found, again := a.read[string(text)]; again {
		return found.Value, found.whole, nil
	}
	v, whole, err = r.readPlain(text, a.of)
	if err == nil && len(a.read) < valuesShared {
		a.read[string(text)] = readValue{v, whole}
	}
	return v, whole, err
}

func (r *reader) provider(digest string) (readProvider, error) {
	if p, known := r.providers[digest]; known || digest == "" {
		return p, nil
	}
	text, there := r.Providers[digest]
	if !there {
		return readProvider{}, fmt.Errorf("its provider %q is in no table", digest)
	}
	var f providerFile
	if err := decode(text, &f); err != nil {
		return readProvider{}, fmt.Errorf("its provider: %w", err)
	}
	p := readProvider{ref: spec.ProviderRef{Type: f.Type, Name: f.Name, Key: f.Key}}
	if f.Settings != nil {
		v, whole, err := r.readPlain(f.Settings, r.types.settings(f.Type))
		if err != nil {
			return readProvider{}, fmt.Errorf("the settings of its provider: %w", err)
		}
		if p.settings = v; !whole {
			p.kept = &kept{f.Settings, v}
		}
	}
	r.providers[digest] = p
	return p, nil
}

// policy returns a policy, and its JSON if this build's type cannot represent it exactly.
func (r *reader) policy(key policyKey) (cty.Value, *kept, error) {
	k, known := r.policies[key]
	if !known {
		text, there := r.Policies[key.digest]
		if !there {
			return cty.NilVal, nil, fmt.Errorf("its policy %q is in no table", key.digest)
		}
		v, whole, err := r.readPlain(text, r.types.policy(key.kind))
		if err != nil {
			return cty.NilVal, nil, fmt.Errorf("its policy: %w", err)
		}
		if k = (kept{read: v}); !whole {
			k.text = text
		}
		r.policies[key] = k
	}
	if k.text == nil {
		return k.read, nil, nil
	}
	return k.read, &k, nil
}

// readValues decodes the attributes of a record by the types of its kind. It also returns the JSON
// of the attributes that have no type or that their type cannot represent exactly.
func (r *reader) readValues(text []byte, kind spec.Kind) (cty.Value, map[string]kept, error) {
	all, err := r.members(text)
	if err != nil {
		return cty.NilVal, nil, plainError(err)
	}
	if all == nil {
		return cty.NilVal, nil, errors.New("they are no object")
	}
	if err := r.upgrade(kind, all); err != nil {
		return cty.NilVal, nil, err
	}
	attributes := r.attributesOf(kind)
	var held map[string]kept
	values := make(map[string]cty.Value, len(all))
	for name, raw := range all {
		a, known := attributes[name]
		v, whole, err := cty.NilVal, false, error(nil)
		if known {
			v, whole, err = r.value(a, raw)
		}
		if known && err == nil {
			values[name] = v
		} else {
			v = cty.NilVal
		}
		if !whole {
			if held == nil {
				held = map[string]kept{}
			}
			held[name] = kept{raw, v}
		}
	}
	return cty.ObjectVal(values), held, nil
}

// types returns the types of this build, or those that a test has set.
func (d documents) types() types {
	if d.knownTypes != nil {
		return d.knownTypes
	}
	return specTypes{}
}

// types returns the types of recorded values.
type types interface {
	values(spec.Kind) map[string]cty.Type // of the attributes, computed ones included
	policy(spec.Kind) cty.Type
	settings(provider string) cty.Type
	shapes() map[spec.Kind]int // the version of each kind's shape
	// upgrades returns the upgrades of the values of a kind, by the version that they read.
	upgrades(spec.Kind) map[int]valuesUpgrade
}

type specTypes struct{}

func (specTypes) values(kind spec.Kind) map[string]cty.Type { return spec.ValueTypes(kind) }
func (specTypes) policy(kind spec.Kind) cty.Type            { return spec.PolicyType(kind) }
func (specTypes) settings(provider string) cty.Type         { return spec.SettingsType(provider) }
func (specTypes) shapes() map[spec.Kind]int                 { return spec.ShapeVersions() }

func (specTypes) upgrades(kind spec.Kind) map[int]valuesUpgrade { return shapeUpgrades[kind] }
