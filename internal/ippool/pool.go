// Package ippool gives away the addresses of networks: it says which address a machine gets, and which prefix a network gets.
// It is pure: whoever calls it says what is in use, and keeps what was chosen.
package ippool

import (
	"iter"
	"net/netip"
	"slices"
)

// Pool holds the addresses of one network that machines may get without asking for one by name.
type Pool struct {
	Prefix      netip.Prefix // of the network
	First, Last netip.Addr   // of those to choose from; zero: the first and the last one that a machine may have
	Reserved    []netip.Addr // that are never chosen
}

// Host returns the address of the host in the network: the first one.
func (p Pool) Host() netip.Addr { return p.Prefix.Addr().Next() }

// Fits reports whether a machine of the network may have an address: neither that of the network, nor that of its host, nor the
// broadcast address.
func (p Pool) Fits(ip netip.Addr) bool {
	return p.Prefix.Contains(ip) && ip != p.Prefix.Addr() && ip != p.Host() && p.Prefix.Contains(ip.Next())
}

// Offers reports whether an address is one of those to choose from, whoever has it.
func (p Pool) Offers(ip netip.Addr) bool {
	return p.Fits(ip) && !ip.Less(p.first()) && (!p.Last.IsValid() || !p.Last.Less(ip)) && !slices.Contains(p.Reserved, ip)
}

// Next returns the lowest address to choose that is not in use; false: there is none.
func (p Pool) Next(used func(netip.Addr) bool) (netip.Addr, bool) {
	for ip := p.first(); p.Fits(ip); ip = ip.Next() {
		if p.Offers(ip) && !used(ip) {
			return ip, true
		}
	}
	return netip.Addr{}, false
}

func (p Pool) first() netip.Addr {
	first := p.Host().Next()
	if p.First.IsValid() && first.Less(p.First) {
		return p.First
	}
	return first
}

// In returns the pool with the same places in another prefix of the same length.
func (p Pool) In(prefix netip.Prefix) Pool {
	moved := Pool{Prefix: prefix, First: p.placeIn(prefix, p.First), Last: p.placeIn(prefix, p.Last)}
	for _, ip := range p.Reserved {
		moved.Reserved = append(moved.Reserved, p.placeIn(prefix, ip))
	}
	return moved
}

// placeIn returns the address of another prefix that has the place of an address in the prefix of p.
func (p Pool) placeIn(prefix netip.Prefix, ip netip.Addr) netip.Addr {
	if !ip.IsValid() {
		return ip
	}
	return address(number(prefix.Addr()) + number(ip) - number(p.Prefix.Addr()))
}

// FreePrefix returns the first candidate that has no address in common with a prefix in use; false: there is none.
func FreePrefix(candidates iter.Seq[netip.Prefix], used []netip.Prefix) (netip.Prefix, bool) {
	for p := range candidates {
		if !slices.ContainsFunc(used, p.Overlaps) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// privateRanges lists the ranges of addresses for networks without a way in from outside (RFC 1918).
func privateRanges() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16")}
}

// Following iterates over a prefix and those of the same length after it in its private range, then those before it. A prefix
// that is not private stands alone.
func Following(prefix netip.Prefix) iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		all := privateRanges()
		i := slices.IndexFunc(all, func(r netip.Prefix) bool { return r.Bits() <= prefix.Bits() && r.Contains(prefix.Addr()) })
		if i < 0 {
			yield(prefix)
			return
		}
		size, start := uint32(1)<<(32-prefix.Bits()), number(all[i].Addr())
		count := uint32(1) << (prefix.Bits() - all[i].Bits())
		at := (number(prefix.Addr()) - start) / size
		for n := range count {
			next := start + (at+n)%count*size
			if !yield(netip.PrefixFrom(address(next), prefix.Bits())) {
				return
			}
		}
	}
}

func number(ip netip.Addr) uint32 {
	b := ip.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}
