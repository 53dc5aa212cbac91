package planner

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/ippool"
	"vmctl/providers"
	"vmctl/spec"
)

// choosePrefix chooses the prefix of a network whose block avoids those of its host. A network keeps its prefix as long as it exists,
// and one that is to be made keeps what was chosen for it unless that is in use by now.
func (d *differ) choosePrefix(c *Change, seen Observation, attr string) {
	wanted, err := netip.ParsePrefix(ctyread.Text(c.Change.Want, attr))
	if err != nil || !ctyread.True(c.Policy, "avoid_host_subnets") {
		return
	}
	candidates, used := d.candidates(c, wanted), d.usedPrefixes(c, seen)
	conflict, taken := inTheWay(used, wanted)
	had, err := netip.ParsePrefix(ctyread.Text(d.had(c, seen), attr))
	keeps := err == nil && isAmong(candidates, had) && !d.options.Replace[c.Address]
	if obstacle, hinders := inTheWay(used, had); keeps && (d.present(c, seen) != nil || !hinders) {
		switch {
		case hinders: // it came later
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s, which overlaps %s: the network keeps that as long as it exists, and --replace=%s chooses again", obstacle, had, c.Address))
		case had != wanted && !taken: // the host has left, or the block was edited
			c.Warnings = append(c.Warnings, fmt.Sprintf("it keeps %s, although %s is free: --replace=%s chooses again", had, wanted, c.Address))
		}
		c.Change.Want = with(c.Change.Want, attr, cty.StringVal(had.String()))
		return
	}
	free, ok := ippool.FreePrefix(candidates, prefixes(used))
	switch {
	case !ok:
		c.unchosen = &Block{Cause: CauseAddress, Problem: providers.Refuse(
			fmt.Sprintf("%s, and no fallback is free", conflict),
			providers.Say("write prefixes that are free into fallback_cidrs of "+c.Address.String()))}
	case free != wanted:
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: it gets %s in place of %s", conflict, free, wanted))
		c.Change.Want = with(c.Change.Want, attr, cty.StringVal(free.String()))
	}
}

// candidates iterates over the prefixes that a network may have, in the order in which they are tried.
func (d *differ) candidates(c *Change, wanted netip.Prefix) iter.Seq[netip.Prefix] {
	fallbacks := ctyread.Attr(c.Policy, "fallback_cidrs")
	if !ctyread.Known(fallbacks) {
		return ippool.Following(wanted)
	}
	all := []netip.Prefix{wanted}
	for _, text := range ctyread.List(fallbacks) {
		if p, err := netip.ParsePrefix(text.AsString()); err == nil {
			all = append(all, p)
		}
	}
	return slices.Values(all)
}

func isAmong(all iter.Seq[netip.Prefix], one netip.Prefix) bool {
	for p := range all {
		if p == one {
			return true
		}
	}
	return false
}

// usedPrefix is a prefix that is in use, or is to be.
type usedPrefix struct {
	netip.Prefix
	by string // the network that has it; "": the host is in it
}

// String says who is in the prefix.
func (u usedPrefix) String() string {
	if u.by == "" {
		return "its host is in " + u.Prefix.String()
	}
	return u.by + " has " + u.Prefix.String()
}

// inTheWay returns the first prefix in use that has addresses in common with another one, and true.
func inTheWay(used []usedPrefix, p netip.Prefix) (usedPrefix, bool) {
	i := slices.IndexFunc(used, func(u usedPrefix) bool { return u.Overlaps(p) })
	if i < 0 {
		return usedPrefix{}, false
	}
	return used[i], true
}

func prefixes(used []usedPrefix) []netip.Prefix {
	var all []netip.Prefix
	for _, u := range used {
		all = append(all, u.Prefix)
	}
	return all
}

// usedPrefixes lists the prefixes that the host of a network is in, and those that the other networks there have or get.
func (d *differ) usedPrefixes(c *Change, seen Observation) []usedPrefix {
	var used []usedPrefix
	for _, p := range seen.System.Inventory.Subnets {
		used = append(used, usedPrefix{Prefix: p})
	}
	add := func(by string, kind spec.Kind, v cty.Value) {
		if p, ok := prefixOf(kind, v); ok {
			used = append(used, usedPrefix{p, by})
		}
	}
	own := d.present(c, seen)
	for i := range seen.System.Inventory.Objects {
		if o := &seen.System.Inventory.Objects[i]; o != seen.Object && o != own {
			by := describe(seen.System, o)
			if a, ours := d.addressOfObject(seen.System, o); ours {
				by = a.String()
			}
			add(by, o.Kind, o.Attrs)
		}
	}
	for _, other := range d.decided {
		if other.System == c.System && other.Address != c.Address {
			add(other.Address.String(), other.Kind, other.Change.Want)
		}
	}
	for a, r := range d.state.Records {
		if a != c.Address && d.decided[a] == nil && d.world.placed[a] == c.System {
			add(a.String(), a.Kind, r.Values)
		}
	}
	for i := range d.config.Resources {
		r := &d.config.Resources[i]
		if r.Address != c.Address && d.decided[r.Address] == nil && d.world.wanted[r.Address] == c.System && !ctyread.True(r.Policy, "avoid_host_subnets") {
			add(r.Address.String(), r.Address.Kind, r.Want)
		}
	}
	slices.SortFunc(used, compareUsed)
	return used
}

// prefixOf returns the prefix from which an object of a kind gives addresses; false: it gives none.
func prefixOf(kind spec.Kind, v cty.Value) (netip.Prefix, bool) {
	attr := natures[kind].prefix
	if attr == "" {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(ctyread.Text(v, attr))
	return p, err == nil
}

func compareUsed(a, b usedPrefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()), cmp.Compare(a.by, b.by))
}
