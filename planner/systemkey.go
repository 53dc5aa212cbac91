package planner

import (
	"encoding/json"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// SystemKey identifies the system that a provider block leads to, by its resolved
// settings: blocks with one key lead to the same. Settings that are not known are an
// error.
func SystemKey(t providers.Type, ref spec.ProviderRef, settings cty.Value) (string, error) {
	if ref.IsOnThisHost() {
		return ref.String() + " " + ref.Name, nil
	}
	if settings == cty.NilVal {
		return "", fmt.Errorf("%s is not declared", ref)
	}
	settings = spec.Withheld(settings) // sensitive settings identify no system
	if t.System != nil {
		settings = t.System(ref.Label(), settings)
	}
	plain, err := json.Marshal(ctyjson.SimpleJSONValue{Value: settings})
	if err != nil {
		return "", fmt.Errorf("settings of %s: %w", ref, err)
	}
	return ref.Type + " " + string(plain), nil
}

// systemKeys finds the systems of provider blocks and records. Thousands of records have the
// settings of a few blocks: it makes the key of equal settings once.
type systemKeys struct {
	types  providers.Types
	blocks map[spec.ProviderRef]cty.Value // the resolved settings of the provider blocks
	found  map[spec.ProviderRef]systemKey // of the blocks
	made   map[spec.ProviderRef][]systemKey
}

func newSystemKeys(c *spec.Config, types providers.Types) *systemKeys {
	k := &systemKeys{
		types: types, blocks: map[spec.ProviderRef]cty.Value{},
		found: map[spec.ProviderRef]systemKey{}, made: map[spec.ProviderRef][]systemKey{},
	}
	for _, p := range c.Providers {
		k.blocks[p.Ref] = p.Attrs
		if t := types.System(p.Ref); t.Resolve != nil {
			k.blocks[p.Ref] = t.Resolve(p.Attrs)
		}
	}
	return k
}

// systemKey is the result of a SystemKey.
type systemKey struct {
	settings cty.Value
	key      string
	err      error
}

// ofBlock returns the key of a provider block, and an error if there is no such block.
func (k *systemKeys) ofBlock(ref spec.ProviderRef) systemKey {
	if found, ok := k.found[ref]; ok {
		return found
	}
	settings := k.blocks[ref]
	if ref.IsOnThisHost() {
		settings = cty.EmptyObjectVal
	}
	found := k.of(ref, settings)
	k.found[ref] = found
	return found
}

// of returns the key of the settings of a provider.
func (k *systemKeys) of(ref spec.ProviderRef, settings cty.Value) systemKey {
	for _, m := range k.made[ref] {
		if m.settings == cty.NilVal && settings == cty.NilVal || m.settings != cty.NilVal && settings != cty.NilVal && m.settings.RawEquals(settings) {
			return m
		}
	}
	m := systemKey{settings: settings}
	m.key, m.err = SystemKey(k.types.System(ref), ref, settings)
	k.made[ref] = append(k.made[ref], m)
	return m
}

// current returns the key of the system of a record, with the settings with which it is reached now:
// those of its provider block, if that is still there and leads to the same system, else the recorded
// ones.
func (k *systemKeys) current(r state.Record) systemKey {
	recorded := k.of(r.Provider, r.Settings)
	if now := k.ofBlock(r.Provider); now.err == nil && recorded.err == nil && now.key == recorded.key {
		return now
	}
	return recorded
}
