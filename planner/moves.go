package planner

import (
	"maps"
	"slices"

	"vmctl/spec"
	"vmctl/state"
)

// Moves lists what the moved blocks of a spec do to a state: an entry for each
// record that gets another address. A record stays where it is while the address
// that it is to get has one of its own, and is what that says.
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

// destination is where the moves lead an address, one after the other. Those that
// lead in a circle lead nowhere.
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

// moved is where one move leads an address. A move that names the instance counts
// before one of its block.
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

// ends reports whether a removed block ends what an address has.
func (d *differ) ends(a spec.Address) bool {
	return slices.ContainsFunc(d.config.Removals, func(r spec.Removal) bool { return covers(r.From, a) && r.Destroy })
}

// covers reports whether an address is another one, or an instance of its block.
func covers(block, a spec.Address) bool { return block == a || block.Key == "" && block == a.Block() }

// Moves are those of the moves that Moves found that carrying out a plan writes down: of
// what is in its scope, deferred or not, and none where it has no steps, since nobody is
// asked then. What they concern has gone by then: its record follows with the next step.
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
