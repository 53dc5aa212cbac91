package spec

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// membersOf returns a list of addresses as a map from these to empty IDs, and any other value as it is.
func membersOf(v cty.Value) cty.Value {
	if ty := v.Type(); !ty.IsTupleType() && !ty.IsListType() && !ty.IsSetType() || !v.IsWhollyKnown() {
		return v
	}
	all := map[string]cty.Value{}
	for _, address := range v.AsValueSlice() {
		if address.IsNull() || address.Type() != cty.String {
			return v
		}
		all[address.AsString()] = cty.StringVal("")
	}
	if len(all) == 0 {
		return cty.MapValEmpty(cty.String)
	}
	return cty.MapVal(all)
}

// canonicalMembers checks the addresses of resources of a Terraform module.
func canonicalMembers(v cty.Value) (cty.Value, string) {
	v = withoutNulls(v)
	for _, address := range sortedKeys(v) {
		if strings.HasPrefix(address, "data.") || !memberPattern.MatchString(address) {
			return cty.NilVal, fmt.Sprintf("names %q, which is no address of a resource of the module: write it as `terraform state list` does, like \"libvirt_network.lan\".", shorten(address))
		}
		if id := v.Index(cty.StringVal(address)).AsString(); strings.HasPrefix(id, "-") || strings.ContainsFunc(id, isControl) {
			return cty.NilVal, fmt.Sprintf("has the ID %q for `%s`: an ID begins with no hyphen and is on one line.", shorten(id), address)
		}
	}
	return v, ""
}
