package ippool

import (
	"maps"
	"net/netip"
	"slices"
)

// Book says who has which address of one network.
type Book struct {
	Pool
	holders map[netip.Addr]map[string]bool
	asked   map[netip.Addr]bool
}

// Ask notes that somebody asks for an address by its name: it is chosen for nobody, and whoever has it keeps it.
func (b *Book) Ask(ip netip.Addr) {
	if b.asked == nil {
		b.asked = map[netip.Addr]bool{}
	}
	b.asked[ip] = true
}

// Hold notes that a holder has an address. Several can: what is in use counts, whoever was wrong.
func (b *Book) Hold(ip netip.Addr, holder string) {
	if b.holders == nil {
		b.holders = map[netip.Addr]map[string]bool{}
	}
	if b.holders[ip] == nil {
		b.holders[ip] = map[string]bool{}
	}
	b.holders[ip][holder] = true
}

// IsOthers reports whether somebody else than a holder has an address.
func (b *Book) IsOthers(ip netip.Addr, holder string) bool {
	all := b.holders[ip]
	return len(all) > 1 || len(all) == 1 && !all[holder]
}

// Keep lets a holder have the address that it had, as long as the network has it and nobody else. It notes that, and reports whether
// it is so. The address may be one that would not be chosen.
func (b *Book) Keep(holder string, had netip.Addr) bool {
	if !had.IsValid() || !b.Fits(had) || b.IsOthers(had, holder) {
		return false
	}
	b.Hold(had, holder)
	return true
}

// Choose returns a free address for a holder that has none, and notes that it has it: the one that it would like, if that is one to
// choose, else the lowest one. wish is zero if it would like none. false: no address is free.
func (b *Book) Choose(holder string, wish netip.Addr) (netip.Addr, bool) {
	used := func(ip netip.Addr) bool { return len(b.holders[ip]) > 0 || b.asked[ip] }
	ip, free := wish, wish.IsValid() && b.Offers(wish) && !used(wish)
	if !free {
		ip, free = b.Next(used)
	}
	if free {
		b.Hold(ip, holder)
	}
	return ip, free
}

// Holders lists who has an address, sorted.
func (b *Book) Holders() []string {
	all := map[string]bool{}
	for _, holders := range b.holders {
		maps.Copy(all, holders)
	}
	return slices.Sorted(maps.Keys(all))
}
