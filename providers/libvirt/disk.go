package libvirt

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// store is a disk as the spec wants it.
type store struct {
	Size   uint64 // bytes
	Format string // raw, qcow2
}

func storeOf(v cty.Value) (store, error) {
	if !known(v) {
		return store{}, fmt.Errorf("it has no attributes")
	}
	return store{Size: number(v, "size"), Format: text(v, "format")}, nil
}

// judgeSize lets a disk grow, and never shrink.
func judgeSize(before, after cty.Value, _ bool) providers.Verdict {
	if !known(before) || !known(after) || before.Type() != cty.Number || after.Type() != cty.Number {
		return providers.Verdict{Applies: providers.Live, Reason: "it is grown in its place"}
	}
	if after.LessThan(before).True() {
		return providers.Verdict{Applies: providers.Refused, Reason: "shrinking a disk would cut off what is at its end"}
	}
	return providers.Verdict{Applies: providers.Live, Reason: "it is grown in its place, in use or not"}
}
