package spec_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/spec"
)

// An instance of a chain uses the one of its own key; a block without instances has
// none to choose from.
func TestUsesOfAChain(t *testing.T) {
	c := good(t, `
disk "many" {
  for_each = toset(["k", "l"])
  size     = "1GiB"
}
vm "chained" { for_each = disk.many }
vm "one" {}
disk "attributes" {
  for_each = vm.one
  size     = "1GiB"
}
`)
	seen := map[string]int{}
	for _, r := range c.Resources {
		if r.Address.Name == "chained" || r.Address.Name == "attributes" {
			want := fmt.Sprintf(`[disk.many["%s"]]`, r.Address.Key)
			if r.Address.Name == "attributes" {
				want = "[vm.one]"
			}
			if got := fmt.Sprint(r.Uses); got != want {
				t.Errorf("%s uses %s, want %s", r.Address, got, want)
			}
			seen[r.Address.Name]++
		}
	}
	if seen["chained"] != 2 || seen["attributes"] < 10 {
		t.Errorf("saw %v", seen)
	}
}

// An instance of a map uses the resources in the value of its own key. All instances use the
// resources elsewhere in the block, and those of a map that cannot be taken apart.
func TestUsesOfAMap(t *testing.T) {
	c := good(t, `
locals {
  one = { k = disk.x, l = disk.y }
}
disk "x" { size = "1GiB" }
disk "y" { size = "1GiB" }
disk "z" { size = "1GiB" }
vm "own" {
  for_each = { k = disk.x, (upper("l")) = disk.y }
  additional_disk {
    disk = each.value
  }
}
vm "more" {
  for_each   = { k = disk.x, l = "none" }
  depends_on = [disk.z]
}
vm "merged" { for_each = merge({ k = disk.x }, { l = disk.y }) }
vm "local" { for_each = local.one }
`)
	want := map[string]string{
		`vm.own["k"]`: "[disk.x]", `vm.own["L"]`: "[disk.y]",
		`vm.more["k"]`: "[disk.x disk.z]", `vm.more["l"]`: "[disk.z]",
		`vm.merged["k"]`: "[disk.x disk.y]", `vm.merged["l"]`: "[disk.x disk.y]",
		`vm.local["k"]`: "[disk.x disk.y]", `vm.local["l"]`: "[disk.x disk.y]",
	}
	got := map[string]string{}
	for _, r := range c.Resources {
		if r.Address.Kind == spec.VM {
			got[r.Address.String()] = fmt.Sprint(r.Uses)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("who uses what (-want +got):\n%s", d)
	}
}
