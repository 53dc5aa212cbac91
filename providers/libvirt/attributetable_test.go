package libvirt_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers/libvirt"
	"vmctl/providers/providertest"
	"vmctl/spec"
)

func TestJudge(t *testing.T) {
	attrs := libvirt.Type(libvirt.Host{}).Kinds[spec.VM]
	values := map[string][2]cty.Value{"port_forward": {forwards("auto"), forwards("8080")}}
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(attrs)) {
		switch a := attrs[path]; {
		case a.Computed:
			fmt.Fprintf(&b, "%-16s computed\n", path)
		case a.Judge == nil:
			fmt.Fprintf(&b, "%-16s replace\n", path)
		default:
			v := values[path]
			on, off := a.Judge(v[0], v[1], true), a.Judge(v[0], v[1], false)
			fmt.Fprintf(&b, "%-16s running: %s (%s); off: %s (%s)\n", path, on.Applies, on.Reason, off.Applies, off.Reason)
		}
	}
	refused := attrs["port_forward"].Judge(forwards("auto"), ipv6(), false)
	fmt.Fprintf(&b, "%-16s to IPv6: %s (%s)\n", "port_forward", refused.Applies, refused.Reason)
	wantGolden(t, "attributes.txt", b.String())
}

// Every attribute of a vm's shape is supported, except the attributes of vmctl's policy, those that only Lima has,
// and scripts, which run around every provider.
func TestEveryAttributeOfTheShapeIsKnown(t *testing.T) {
	attrs := libvirt.Type(libvirt.Host{}).Kinds[spec.VM]
	shape, ok := spec.Shape(spec.VM)
	if !ok {
		t.Fatal("spec knows no vm")
	}
	var walk func(prefix string, b spec.Block)
	walk = func(prefix string, b spec.Block) {
		for _, a := range b.Attrs {
			path := prefix + a.Name
			_, listed := attrs[path]
			_, above := attrs[strings.TrimSuffix(prefix, ".")]
			_, limas := providertest.WithoutLima(nil)["vm."+path]
			if !limas && b.Name != "provision" && !a.Meta && !a.Own && !a.Policy && !b.Policy && !listed && !above {
				t.Errorf("%s is in no row of the table", path)
			}
		}
		for _, nested := range b.Blocks {
			walk(prefix+nested.Name+".", nested)
		}
	}
	walk("", shape)
}
