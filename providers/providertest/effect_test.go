package providertest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers/providertest"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

// The registry of effects demands a row for each documented attribute, and an attribute for
// each row.
//
// row A32
func TestGaps(t *testing.T) {
	for _, kind := range []spec.Kind{spec.VM, spec.Disk, box.Kind} {
		shape, _ := spec.Shape(kind)
		if gaps := providertest.Gaps(kind, shape); len(gaps) > 0 {
			t.Errorf("the shape of %s as it is: %s", kind, strings.Join(gaps, "\n"))
		}
	}
	vm, _ := spec.Shape(spec.VM)
	stop := slices.IndexFunc(vm.Blocks, func(b spec.Block) bool { return b.Name == "stop" })
	for _, test := range []struct {
		name string
		edit func(*spec.Block)
		want []string
	}{
		{
			name: "a new attribute",
			edit: func(b *spec.Block) {
				b.Attrs = append(b.Attrs, spec.Attr{Name: "firmware", Type: cty.String})
			},
			want: []string{"vm.firmware: no row proves its effect"},
		},
		{
			name: "a new attribute of policy in a block",
			edit: func(b *spec.Block) {
				b.Blocks[stop].Attrs = append(slices.Clone(b.Blocks[stop].Attrs), spec.Attr{Name: "again", Type: cty.Number})
			},
			want: []string{"vm.stop.again: no row proves its effect"},
		},
		{
			name: "an attribute that is gone",
			edit: func(b *spec.Block) {
				b.Attrs = slices.DeleteFunc(b.Attrs, func(a spec.Attr) bool { return a.Name == "cpus" || a.Name == "when_busy" })
			},
			want: []string{"vm.when_busy: the row has no attribute", "vm.cpus: the row has no attribute"},
		},
		{name: "a computed attribute", edit: func(b *spec.Block) { b.Attrs = append(b.Attrs, spec.Attr{Name: "uptime", Computed: true}) }},
	} {
		shape := vm
		shape.Attrs, shape.Blocks = slices.Clone(vm.Attrs), slices.Clone(vm.Blocks)
		test.edit(&shape)
		if diff := cmp.Diff(test.want, providertest.Gaps(spec.VM, shape)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
