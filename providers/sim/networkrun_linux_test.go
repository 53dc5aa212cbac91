package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// The record of a run that has ended keeps no network and no address; a VM that still runs keeps both, whatever its file says.
func TestNetworkOfARunThatEnded(t *testing.T) {
	t.Parallel()
	for _, weightless := range []bool{false, true} {
		t.Run(fmt.Sprintf("weightless=%t", weightless), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.settings = l.house.settings(weightless)
			l.carryOut(l.network(providers.Create))
			runs := l.making("a", "10.0.0.2")
			m := runs.Want.AsValueMap()
			m["running"] = cty.True
			runs.Want = cty.ObjectVal(m)
			begins := func(got, want string) {
				t.Helper()
				if got = l.plain(got); !strings.HasPrefix(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
			}
			begins(l.carryOut(runs), "define done, start done")
			file := l.vmPath("lab.a")
			l.edit(file, func(m map[string]any) { delete(m["config"].(map[string]any), "networks") })
			begins(l.carryOut(l.making("b", "10.0.0.2")), "define stale (ip_taken)")
			begins(l.carryOut(l.network(providers.Destroy)), "delete refused (network_in_use): delete network.lan: VM lab.a is in it")
			if weightless {
				l.edit(file, func(m map[string]any) { m["run"].(map[string]any)["ended"] = true })
			} else {
				l.kill()
			}
			begins(l.carryOut(l.making("b", "10.0.0.2")), "define done")
			l.edit(l.vmPath("lab.b"), func(m map[string]any) { delete(m["config"].(map[string]any), "networks") })
			begins(l.carryOut(l.network(providers.Destroy)), "delete done")
		})
	}
}
