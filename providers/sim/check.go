package sim

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// check says what no VM of a host could do.
func check(_ spec.Kind, want cty.Value) []spec.Flaw {
	f := attr(want, "port_forward")
	if f == cty.NilVal {
		return nil
	}
	if _, err := forwardsOf(f); err != nil {
		return []spec.Flaw{{
			Path: "port_forward", Summary: "Impossible port_forward", Detail: fmt.Sprintf("The ports cannot be forwarded: %v.", err),
		}}
	}
	return nil
}
