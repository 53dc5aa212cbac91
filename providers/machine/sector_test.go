package machine_test

import (
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers/machine"
)

func TestWholeSectors(t *testing.T) {
	for size, want := range map[cty.Value]string{
		cty.NumberIntVal(4 << 20):       "[]",
		cty.NumberIntVal(4<<20 + 1):     "[{size Impossible size A disk has whole sectors of 512 bytes, and 4194305 is not a multiple of 512. The next larger size is `4194816B`.}]",
		cty.NullVal(cty.Number):         "[]",
		cty.UnknownVal(cty.Number):      "[]",
		cty.NumberIntVal(2_000_000_000): "[]",
	} {
		if got := fmt.Sprint(machine.WholeSectors(cty.ObjectVal(map[string]cty.Value{"size": size}), "size")); got != want {
			t.Errorf("%#v: flaws %s, want %s", size, got, want)
		}
	}
	if got := machine.WholeSectors(cty.NullVal(cty.DynamicPseudoType), "root_disk.size"); got != nil {
		t.Errorf("no disk: flaws %v", got)
	}
}
