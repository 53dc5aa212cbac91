package state_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/state"
)

// A script that is not wholly known equals nothing for certain: not even another one that is not known.
func TestUnknownScripts(t *testing.T) {
	var key state.DigestKey
	block := func(script, variable cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"script": script, "env": cty.MapVal(map[string]cty.Value{"A": variable})})
	}
	one := block(cty.StringVal("one"), cty.StringVal("a"))
	unknown := block(cty.StringVal("two"), cty.UnknownVal(cty.String))
	for _, test := range []struct {
		name        string
		ran, now    cty.Value
		same, known bool
	}{
		{"equal", one, one, true, true},
		{"another", block(cty.StringVal("two"), cty.StringVal("a")), one, false, true},
		{"unknown now", one, unknown, true, false},
		{"unknown as it ran", unknown, one, true, false},
		{"both unknown", unknown, unknown, true, false},
	} {
		same, known := key.Provisioned(key.Provision("id", "tools", test.ran), "id", "tools", test.now)
		if same != test.same || known != test.known {
			t.Errorf("%s: same %t, known %t; want %t, %t", test.name, same, known, test.same, test.known)
		}
	}
}
