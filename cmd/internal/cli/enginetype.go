package cli

import (
	"fmt"
	"slices"
	"strings"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// hasNoAPI reports whether an engine is of a type in which nothing is managed.
func (v observedAddress) hasNoAPI() bool {
	setting := typeSetting()
	return ctyread.Text(v.object.Attrs, setting.Attr) == setting.Value
}

// finding returns what was found at an object that does not work, "" if nothing was.
func (v observedAddress) finding() string {
	for _, f := range v.object.Findings {
		if f.Kind == providers.FindBroken {
			return strings.Join(f.Evidence, "; ")
		}
	}
	return ""
}

// notApplicable is the state of an object inside of an engine in which nothing is managed, or whose VM is off for good.
const notApplicable = "not_applicable"

// inEngine reports whether the objects of a kind are inside of engines.
func inEngine(kind spec.Kind) bool { return slices.Contains(spec.InsideOf(spec.Engine), kind) }

// needsAPI returns the problem of a command that would speak to an engine of a type without an API.
func (v observedAddress) needsAPI(command string) error {
	if v.object == nil || !v.hasNoAPI() {
		return nil
	}
	setting := typeSetting()
	return newProblem(classRefused, "not_applicable",
		fmt.Sprintf("%s: %s has %s, which has no API that vmctl speaks", command, v.address, setting),
		fmt.Sprintf("write another %s into %s, and apply", setting.Attr, v.address))
}

// typeSetting returns the setting of an engine in which nothing is managed.
func typeSetting() spec.Setting {
	shape, _ := spec.Shape(spec.Engine)
	return *shape.Inapplicable
}
