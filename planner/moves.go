package planner

import (
	"maps"
	"slices"

	"vmctl/spec"
	"vmctl/state"
)

// Moves lists the journal entries by which the moved blocks of a spec change a state: one for
// each record that gets another address. A record stays where it is while its new address has a
// record of its own.
func Moves(c *spec.Config, s *state.Snapshot) []state.Entry {
	var entries []state.Entry
	taken := maps.Clone(s.Records)
	for _, from := range slices.SortedFunc(maps.Keys(s.Records), spec.Address.Compare) {
		to := destination(c, from)
		if _, occupied := taken[to]; to == from || occupied {
			continue
		}
		r := s.Records[from]
		entries = append(entries, state.Entry{
			Kind: state.Note, Op: state.Moved, Step: len(entries), From: from, Address: to, ID: r.ID, Name: r.Name,
		})
		delete(taken, from)
		taken[to] = r
	}
	return entries
}

// destination returns the address to which the moves lead an address, one after the other. If
// they lead in a circle, it returns the address itself.
func destination(c *spec.Config, from spec.Address) spec.Address {
	seen := map[spec.Address]bool{}
	for a := from; !seen[a]; {
		seen[a] = true
		next := moved(c, a)
		if next == a {
			return a
		}
		a = next
	}
	return from
}

// moved returns the address to which one move leads an address. A move that names the instance
// counts before one of its block.
func moved(c *spec.Config, a spec.Address) spec.Address {
	for _, m := range c.Moves {
		if m.From == a {
			return m.To
		}
	}
	for _, m := range c.Moves {
		if m.From == a.Block() && m.To.Key == "" {
			return spec.Address{Kind: m.To.Kind, Name: m.To.Name, Key: a.Key}
		}
	}
	return a
}

// lets reports whether a removed block lets go of an address.
func (d *differ) lets(a spec.Address) bool {
	return slices.ContainsFunc(d.config.Removals, func(r spec.Removal) bool { return covers(r.From, a) && !r.Destroy })
}

// ends reports whether a removed block, or a clean-up, destroys the object of an address.
func (d *differ) ends(a spec.Address) bool {
	return d.options.CleanUp[a] || slices.ContainsFunc(d.config.Removals, func(r spec.Removal) bool { return covers(r.From, a) && r.Destroy })
}

// covers reports whether an address is another one, or an instance of its block.
func covers(block, a spec.Address) bool { return block == a || block.Key == "" && block == a.Block() }

// Moves returns the entries of all that a plan writes down: the moves of addresses in its scope,
// deferred or not. A plan without steps writes none, since nobody is asked then: the records move
// with the next plan that has steps.
func (p *Plan) Moves(all []state.Entry) []state.Entry {
	if len(p.Steps) == 0 {
		return nil
	}
	scope := map[spec.Address]bool{}
	for i := range p.Changes {
		scope[p.Changes[i].Address] = true
	}
	for _, d := range p.Deferred {
		scope[d.Address] = true
	}
	var moves []state.Entry
	for _, e := range all {
		if scope[e.Address] {
			e.Step = len(moves)
			moves = append(moves, e)
		}
	}
	return moves
}
