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
	return append(twice(want), untold(want)...)
}

// twice returns the flaw of variables that two attributes set.
func twice(want cty.Value) []spec.Flaw {
	texts := ctyread.Attr(want, "variables")
	if !ctyread.Known(texts) {
		return nil
	}
	texts, _ = texts.Unmark()
	for _, name := range slices.Sorted(maps.Keys(objectOf(ctyread.Attr(want, "variables_json")))) {
		if _, is := texts.AsValueMap()[name]; is {
			return []spec.Flaw{{
				Path: "variables_json", Summary: "Variable set twice",
				Detail: fmt.Sprintf("`variables` and `variables_json` both set `%s`. Leave it out of one.", name),
			}}
		}
	}
	return nil
}

// untold returns the flaws of outputs.
func untold(want cty.Value) []spec.Flaw {
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
