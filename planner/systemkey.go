package planner

import (
	"encoding/json"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"vmctl/providers"
	"vmctl/spec"
)

// SystemKey identifies the system that a provider block leads to, by its resolved
// settings: blocks with one key lead to the same. Settings that are not known are an
// error.
func SystemKey(t providers.Type, ref spec.ProviderRef, settings cty.Value) (string, error) {
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
	types map[string]providers.Type
	made  map[spec.ProviderRef][]madeKey
}

// madeKey is the result of a SystemKey.
type madeKey struct {
	settings cty.Value
	key      string
	err      error
}

// of returns the SystemKey of the settings of a provider.
func (k *systemKeys) of(ref spec.ProviderRef, settings cty.Value) (string, error) {
	for _, m := range k.made[ref] {
		if m.settings == cty.NilVal && settings == cty.NilVal || m.settings != cty.NilVal && settings != cty.NilVal && m.settings.RawEquals(settings) {
			return m.key, m.err
		}
	}
	m := madeKey{settings: settings}
	m.key, m.err = SystemKey(k.types[ref.Type], ref, settings)
	k.made[ref] = append(k.made[ref], m)
	return m.key, m.err
}
