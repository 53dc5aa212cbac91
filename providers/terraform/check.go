package terraform

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/spec"
)

// The names of the attributes that outputs can tell.
const (
	outID      = "id"
	outAddress = "address"
	outSSHPort = "ssh_port"
	outHostKey = "host_key"
)

// check returns the flaws of a want that no module could fulfil.
func check(_ spec.Kind, want cty.Value) []spec.Flaw {
	outputs := ctyread.Attr(want, "outputs")
	if !ctyread.Known(outputs) {
		return nil
	}
	told := []string{outAddress, outHostKey, outID, outSSHPort}
	var flaws []spec.Flaw
	for _, name := range slices.Sorted(maps.Keys(outputs.AsValueMap())) {
		if !slices.Contains(told, name) {
			flaws = append(flaws, spec.Flaw{
				Path: "outputs", Summary: "Unknown attribute",
				Detail: fmt.Sprintf("An output can tell `address`, `host_key`, `id` or `ssh_port`, and not `%s`.%s", name, spec.DidYouMean(name, told)),
			})
		}
	}
	return flaws
}

// outputOf returns the name of the output that tells an attribute. "": none does.
func outputOf(outputs cty.Value, attribute string) string {
	if !ctyread.Known(outputs) {
		return ""
	}
	name := outputs.AsValueMap()[attribute]
	if !ctyread.Known(name) {
		return ""
	}
	return name.AsString()
}
