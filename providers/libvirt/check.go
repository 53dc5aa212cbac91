package libvirt

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// check says what QEMU could never do for a vm.
func check(_ spec.Kind, want cty.Value) []spec.Flaw {
	var flaws []spec.Flaw
	if b := attr(want, bootAttr); b != cty.NilVal && b.IsKnown() && b.IsNull() {
		flaws = append(flaws, spec.Flaw{
			Summary: "Nothing to boot",
			Detail:  "A VM boots from something: add a `boot` block that sets `kernel`.",
		})
	}
	if f := attr(want, forwardAttr); f != cty.NilVal && f.IsWhollyKnown() {
		if _, err := forwardsOf(f); err != nil {
			flaws = append(flaws, spec.Flaw{
				Path: forwardAttr, Summary: "Impossible port_forward", Detail: fmt.Sprintf("The ports cannot be forwarded: %v.", err),
			})
		}
	}
	return flaws
}
