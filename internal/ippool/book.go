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

// Choose returns the address of a holder, and notes that it has it: the one that it had, as long as the network has it and
// nobody else, and otherwise the lowest free one. had is zero if it had none. false: no address is free.
func (b *Book) Choose(holder string, had netip.Addr) (netip.Addr, bool) {
	if had.IsValid() && b.Fits(had) && !b.IsOthers(had, holder) {
		b.Hold(had, holder)
		return had, true
	}
	ip, free := b.Next(func(ip netip.Addr) bool { return len(b.holders[ip]) > 0 || b.asked[ip] })
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
