package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// What a resource reaches is told without secrets, and with folders as they are on every machine.
func TestReaches(t *testing.T) {
	mount := func(source cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"source": source, "target": cty.NullVal(cty.String), "writable": cty.True})
	}
	want := cty.ObjectVal(map[string]cty.Value{
		"cpus": cty.NumberIntVal(2),
		"mount": cty.ListVal([]cty.Value{
			mount(cty.StringVal("/spec/src")), mount(cty.StringVal("/etc")), mount(cty.UnknownVal(cty.String)), mount(cty.StringVal("/x").Mark("sensitive")),
		}),
		"port_forward": cty.UnknownVal(cty.List(cty.EmptyObject)),
	})
	var got strings.Builder
	for _, r := range spec.Reaches(spec.VM, want, cty.NilVal, "/spec") {
		fmt.Fprintf(&got, "%s: %s\n", r.What, r.Text)
	}
	if diff := cmp.Diff(`folder: source (known after apply), writable true
folder: source (sensitive), writable true
folder: source ./src, writable true
folder: source /etc, writable true
port: port_forward (known after apply)
`, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if all := spec.Reaches(spec.Disk, cty.EmptyObjectVal, cty.NilVal, "/spec"); all != nil {
		t.Errorf("a disk reaches %v", all)
	}
}
