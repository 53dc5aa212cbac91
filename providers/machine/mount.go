package machine

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/spec"
)

// NoMounts returns a flaw if a VM wants a disk mounted, for a system that mounts nothing in its
// guests. The detail says why not, and what to write instead.
func NoMounts(want cty.Value, detail string) []spec.Flaw {
	for _, d := range ctyread.List(ctyread.Attr(want, "additional_disk")) {
		if ctyread.Known(ctyread.Attr(d, "mount_point")) {
			return []spec.Flaw{{Path: "additional_disk", Summary: "Unsupported attribute", Detail: detail}}
		}
	}
	return nil
}
