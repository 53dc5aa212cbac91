package spec_test

import (
	"fmt"
	"testing"
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
