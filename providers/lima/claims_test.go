//go:build unix

package lima_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/providertest"
)

// claimsOf returns claims on ports and on disks as text, in order.
func claimsOf(claims []providers.Claim) string {
	var all []string
	for _, c := range claims {
		if c.Kind != providers.ClaimName {
			all = append(all, c.String())
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// A template that forwards ports and names disks claims them as a block does, wanted and made: whoever else takes one of
// them is refused by the plan. They are no attributes of the block.
func TestClaimsOfTemplates(t *testing.T) {
	const ofCache = "disk " + string(cacheID)
	for name, c := range map[string]struct {
		template     string
		plain        bool
		wanted, held string
	}{
		"ports": {
			template: "portForwards: [{guestPort: 80, hostPort: 8080, proto: tcp}, {guestPort: 5353}, {guestPort: 22, ignore: true}]\n",
			wanted:   "host port 127.0.0.1:5353/tcp, host port 127.0.0.1:5353/udp, host port 127.0.0.1:8080/tcp",
			held:     "host port 127.0.0.1:5353/tcp, host port 127.0.0.1:5353/udp, host port 127.0.0.1:8080/tcp",
		},
		"ports in plain mode": {
			plain:    true,
			template: "portForwards: [{guestPort: 80, hostPort: 8080, proto: tcp}, {guestPort: 81, hostPort: 8081, proto: tcp, static: true}]\n",
			wanted:   "host port 127.0.0.1:8081/tcp", held: "host port 127.0.0.1:8081/tcp",
		},
		"disk":                    {template: "additionalDisks: [{name: lab.cache, format: false}]\n", wanted: ofCache, held: ofCache},
		"disk by name":            {template: "additionalDisks: [lab.cache]\n", wanted: ofCache, held: ofCache},
		"disk that is made later": {template: "additionalDisks: [other]\n", wanted: "disk lima:disk:other"},
		"neither":                 {template: "env: {A: b}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			p, err := h.limaType().Open(t.Context(), h.settings())
			if err != nil {
				t.Fatal(err)
			}
			l := &lab{house: h, p: p, vm: want(set("template", cty.StringVal(c.template)), set("plain", cty.BoolVal(c.plain))), policy: providertest.Waits(time.Minute)}
			l.do(cache, providers.Create)
			l.observe()
			steps, err := l.p.Steps(l.change(dev, providers.Create, nil))
			if err != nil {
				t.Fatal(err)
			}
			if got := claimsOf(steps[0].Takes); got != c.wanted {
				t.Errorf("%s takes %s, want %s", steps[0].Op, got, c.wanted)
			}
			if c.held == "" && c.wanted != "" {
				return // there is no such disk
			}
			l.do(dev, providers.Create)
			for _, state := range []string{providers.StateRunning, providers.StateOff} {
				o := l.object(devID)
				if got := claimsOf(o.Holds); o.State != state || got != c.held {
					t.Errorf("%s, it holds %s, want %s", o.State, got, c.held)
				}
				for _, block := range []string{"port_forward", "additional_disk"} {
					if v := o.Attrs.GetAttr(block); v.LengthInt() > 0 {
						t.Errorf("%s is %#v", block, v)
					}
				}
				edit := l.change(dev, providers.Update, o)
				edit.Edits, edit.Yields = []providers.Edit{{Path: "cpus"}}, o.Holds
				steps, err := l.p.Steps(edit)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range steps {
					if s.Op == "redefine" && len(s.Frees)+len(s.Takes) > 0 || s.Op == "detach" {
						t.Errorf("%s frees %v and takes %v of an edit that keeps its template", s.Op, s.Frees, s.Takes)
					}
				}
				if state == providers.StateRunning {
					l.do(dev, providers.Stop)
				}
			}
		})
	}
}

// A disk of a block and one of a template are one disk: both instances claim it.
func TestBlockAndTemplateOfOneDisk(t *testing.T) {
	l := newLab(t)
	other := l.ofTwo(providers.Create)
	other.Want = want(set("template", cty.StringVal("additionalDisks: [lab.cache]\n")))
	holds := l.object(devID).Holds
	steps, err := l.p.Steps(other)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(steps[0].Takes, func(c providers.Claim) bool { return c.Kind != providers.ClaimName && slices.Contains(holds, c) }) {
		t.Errorf("%s of the template takes %v, and the block holds %v", steps[0].Op, steps[0].Takes, holds)
	}
}
