//go:build unix

package sim_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/real"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

var motd = spec.Address{Kind: box.Kind, Name: "motd"}

const motdID = providers.ID("44444444-2222-8333-8444-555555555555")

// boxes opens the provider of the boxes in the lab's VM.
func (l *lab) boxes() providers.Provider {
	l.t.Helper()
	host, ok := providers.Ability[providers.Host](l.open())
	if !ok {
		l.t.Fatal("nobody can enter its VMs")
	}
	settings := l.settings
	settings.Via = &providers.Via{Address: dev, Enter: func(ctx context.Context) (providers.Guest, error) {
		g, err := host.Enter(ctx, *l.vm(), cty.NilVal)
		if err == nil {
			l.t.Cleanup(func() {
				if err := g.Close(); err != nil {
					l.t.Error(err)
				}
			})
		}
		return g, err
	}}
	p, err := box.Type(nil).Open(l.t.Context(), settings)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

// box carries out the steps of an action on a box in the guest, those of some phases alone if any are
// given, and returns the steps that were done.
func (l *lab) box(p providers.Provider, action providers.Action, content string, phases ...providers.Phase) string {
	l.t.Helper()
	c := providers.Change{
		Address: motd, Kind: box.Kind, Action: action, Name: "lab.motd", ID: motdID, Generation: l.generation,
		Want: cty.ObjectVal(map[string]cty.Value{
			"in": cty.StringVal("vm.dev"), "label": cty.StringVal("motd"), "running": cty.True,
			"content": cty.StringVal(content), "paint": cty.StringVal(""),
		}),
	}
	inv, err := p.Observe(l.t.Context(), providers.Query{})
	if err != nil {
		l.t.Fatal(err)
	}
	expect := ""
	for i := range inv.Objects {
		if inv.Objects[i].ID == motdID {
			c.Object, expect = &inv.Objects[i], inv.Objects[i].Fingerprint
		}
	}
	if action == providers.Update {
		c.Edits = []providers.Edit{{Path: "content"}}
	}
	steps, err := p.Steps(c)
	if err != nil {
		l.t.Fatal(err)
	}
	var said []string
	for _, s := range steps {
		if len(phases) > 0 && !slices.Contains(phases, s.Phase) {
			continue
		}
		r, err := p.Do(l.t.Context(), providers.Work{Step: s, Expect: expect, Want: c.Want, Generation: c.Generation}, func(providers.Progress) {})
		if err != nil {
			return l.plain(fmt.Sprintf("%s: %v", s.Op, err))
		}
		expect = r.Fingerprint
		said = append(said, fmt.Sprintf("%s %s", s.Op, r.How))
	}
	return strings.Join(said, ", ")
}

// boxesIn lists the boxes in the guest: label, content, state, and whether vmctl's mark is on them.
func (l *lab) boxesIn(p providers.Provider) string {
	l.t.Helper()
	inv, err := p.Observe(l.t.Context(), providers.Query{})
	if err != nil {
		l.t.Fatal(err)
	}
	var all []string
	for _, o := range inv.Objects {
		all = append(all, fmt.Sprintf("%s %q %s %t", o.Attrs.GetAttr("label").AsString(), o.Attrs.GetAttr("content").AsString(), o.State, o.Owner != nil))
	}
	if why := inv.Partial[box.Kind]; why != nil {
		all = append(all, "partial: "+l.plain(why.Error()))
	}
	return strings.Join(all, "\n")
}

// onEachHost runs a test on VMs with a process, with a host agent too, and without any process.
func onEachHost(t *testing.T, test func(l *lab)) {
	t.Parallel()
	for _, host := range []struct {
		name                  string
		weightless, hostAgent bool
	}{{name: "processes"}, {name: "host agents", hostAgent: true}, {name: "weightless", weightless: true}} {
		t.Run(host.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.hostAgent = host.hostAgent
			l.settings = l.house.settings(host.weightless)
			test(l)
		})
	}
}

// A box in a guest exists as long as its VM, and can be reached as long as the VM runs.
func TestBox(t *testing.T) {
	real.Long(t)
	onEachHost(t, func(l *lab) {
		l.does(providers.Create, created)
		p := l.boxes()
		l.is("", l.boxesIn(p))
		l.is("make done, open done", l.box(p, providers.Create, "be kind"))
		l.is(`motd "be kind" running true`, l.boxesIn(p))
		l.generation = 2
		l.is("write done", l.box(p, providers.Update, "be brave"))
		l.is("write already", l.box(p, providers.Update, "be brave"))
		l.is("close graceful", l.box(p, providers.Release, "be brave", providers.PhaseRelease))
		l.does(providers.Stop, "stop graceful")
		l.is("partial: vm.dev gives no answer: VM lab.dev does not run", l.boxesIn(p))
		l.apply(providers.Start)
		l.is(`motd "be brave" off true`, l.boxesIn(p))
		l.is("open done", l.box(p, providers.Start, "be brave"))
		l.is(`motd "be brave" running true`, l.boxesIn(p))
		l.is("close graceful, remove done", l.box(p, providers.Destroy, ""))
		l.is("", l.boxesIn(p))
		l.is("make done, open done", l.box(p, providers.Create, "be kind"))
		l.does(providers.Destroy, destroyed)
		l.isEmpty()
	})
}

// Somebody else's box in a guest is in the way, and left alone.
func TestBoxOfAnother(t *testing.T) {
	onEachHost(t, func(l *lab) {
		l.does(providers.Create, created)
		p := l.boxes()
		l.is("", l.boxesIn(p))
		homes, err := filepath.Glob(filepath.Join(l.dir, "homes", "*"))
		if err != nil || len(homes) != 1 {
			l.t.Fatalf("insides of VMs: %q, %v", homes, err)
		}
		l.write(filepath.Join(homes[0], "boxes", "motd", "box"), `{"ID":"theirs","Label":"motd","Name":"theirs","Open":true,"Content":"theirs"}`+"\n")
		l.is(`motd "theirs" running false`, l.boxesIn(p))
		l.is("make: make box.motd: vm.dev has a box motd already (theirs)", l.box(p, providers.Create, "be kind"))
		l.is(`motd "theirs" running false`, l.boxesIn(p))
	})
}
