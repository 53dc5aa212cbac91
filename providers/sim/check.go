package sim

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// check returns the flaws of a want that no VM of a host could fulfil.
func check(_ spec.Kind, want cty.Value) []spec.Flaw {
	var flaws []spec.Flaw
	if f := ctyread.Attr(want, "port_forward"); f != cty.NilVal {
		if _, err := machine.DecodeForwards(f); err != nil {
			flaws = append(flaws, spec.Flaw{
				Path: "port_forward", Summary: "Impossible port_forward", Detail: fmt.Sprintf("The ports cannot be forwarded: %v.", err),
			})
		}
	}
	flaws = append(flaws, machine.NoMounts(want, "Nothing is mounted in a simulated guest: leave `mount_point` out.")...)
	if source := ctyread.Text(ctyread.Attr(want, "image"), "source"); strings.Contains(source, "://") {
		flaws = append(flaws, spec.Flaw{
			Path: "image", Summary: "Unsupported image",
			Detail: fmt.Sprintf("A simulated host takes its images from files, and downloads none: %q.", source),
		})
	}
	return flaws
}
