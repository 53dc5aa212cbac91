package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// check says what no VM of a host could do.
func check(_ spec.Kind, want cty.Value) []spec.Flaw {
	var flaws []spec.Flaw
	if f := attr(want, "port_forward"); f != cty.NilVal {
		if _, err := forwardsOf(f); err != nil {
			flaws = append(flaws, spec.Flaw{
				Path: "port_forward", Summary: "Impossible port_forward", Detail: fmt.Sprintf("The ports cannot be forwarded: %v.", err),
			})
		}
	}
	if mounts(attr(want, "additional_disk")) {
		flaws = append(flaws, spec.Flaw{
			Path: "additional_disk", Summary: "Unsupported attribute",
			Detail: "Nothing is mounted in a simulated guest: leave `mount_point` out.",
		})
	}
	if source := text(attr(want, "image"), "source"); strings.Contains(source, "://") {
		flaws = append(flaws, spec.Flaw{
			Path: "image", Summary: "Unsupported image",
			Detail: fmt.Sprintf("A simulated host takes its images from files, and downloads none: %q.", source),
		})
	}
	return flaws
}

func mounts(disks cty.Value) bool {
	if !known(disks) {
		return false
	}
	return slices.ContainsFunc(disks.AsValueSlice(), func(d cty.Value) bool { return text(d, "mount_point") != "" })
}
