package ippool_test

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vmctl/internal/ippool"
)

func ip(text string) netip.Addr       { return netip.MustParseAddr(text) }
func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

func TestNext(t *testing.T) {
	for name, test := range map[string]struct {
		pool ippool.Pool
		used []string
		want string // "": none
	}{
		"after the host":         {ippool.Pool{Prefix: prefix("10.0.0.0/24")}, nil, "10.0.0.2"},
		"first":                  {ippool.Pool{Prefix: prefix("10.0.0.0/24"), First: ip("10.0.0.10")}, nil, "10.0.0.10"},
		"first is the host's":    {ippool.Pool{Prefix: prefix("10.0.0.0/24"), First: ip("10.0.0.1")}, nil, "10.0.0.2"},
		"reserved":               {ippool.Pool{Prefix: prefix("10.0.0.0/24"), Reserved: []netip.Addr{ip("10.0.0.2")}}, []string{"10.0.0.3"}, "10.0.0.4"},
		"last is taken":          {ippool.Pool{Prefix: prefix("10.0.0.0/24"), First: ip("10.0.0.9"), Last: ip("10.0.0.9")}, []string{"10.0.0.9"}, ""},
		"one machine in a /30":   {ippool.Pool{Prefix: prefix("10.0.0.0/30")}, nil, "10.0.0.2"},
		"two machines in a /30":  {ippool.Pool{Prefix: prefix("10.0.0.0/30")}, []string{"10.0.0.2"}, ""},
		"broadcast is none's":    {ippool.Pool{Prefix: prefix("10.0.0.0/24"), First: ip("10.0.0.255")}, nil, ""},
		"the end of all numbers": {ippool.Pool{Prefix: prefix("255.255.255.252/30")}, []string{"255.255.255.254"}, ""},
	} {
		got, ok := test.pool.Next(func(ip netip.Addr) bool { return slices.Contains(test.used, ip.String()) })
		if ok != (test.want != "") || ok && got.String() != test.want {
			t.Errorf("%s: %s, %t; want %q", name, got, ok, test.want)
		}
	}
}

// An address of another network is chosen only where it could be chosen anyway; one that a machine has in the network stays.
func TestWish(t *testing.T) {
	for name, test := range map[string]struct {
		pool ippool.Pool
		wish string
		kept bool   // as the one that it has in the network
		want string // as the one that it would like
	}{
		"free":                   {ippool.Pool{}, "10.0.0.9", true, "10.0.0.9"},
		"reserved":               {ippool.Pool{Reserved: []netip.Addr{ip("10.0.0.9")}}, "10.0.0.9", true, "10.0.0.2"},
		"before the allocation":  {ippool.Pool{First: ip("10.0.0.10")}, "10.0.0.9", true, "10.0.0.10"},
		"after the allocation":   {ippool.Pool{Last: ip("10.0.0.8")}, "10.0.0.9", true, "10.0.0.2"},
		"somebody asks for it":   {ippool.Pool{}, "10.0.0.5", true, "10.0.0.2"},
		"somebody has it":        {ippool.Pool{}, "10.0.0.6", false, "10.0.0.2"},
		"outside of the network": {ippool.Pool{}, "10.0.1.9", false, "10.0.0.2"},
	} {
		test.pool.Prefix = prefix("10.0.0.0/28")
		book := func() *ippool.Book {
			b := &ippool.Book{Pool: test.pool}
			b.Ask(ip("10.0.0.5"))
			b.Hold(ip("10.0.0.6"), "b")
			return b
		}
		if got, ok := book().Choose("a", ip(test.wish)); !ok || got.String() != test.want {
			t.Errorf("%s: %s is chosen, want %s", name, got, test.want)
		}
		b := book()
		if kept := b.Keep("a", ip(test.wish)); kept != test.kept || kept && !b.IsOthers(ip(test.wish), "c") {
			t.Errorf("%s: kept %t, want %t, and noted", name, kept, test.kept)
		}
	}
}

func TestIn(t *testing.T) {
	p := ippool.Pool{Prefix: prefix("192.168.123.0/24"), First: ip("192.168.123.10"), Reserved: []netip.Addr{ip("192.168.123.53")}}
	got := p.In(prefix("10.9.8.0/24"))
	if got.First != ip("10.9.8.10") || got.Last.IsValid() || !slices.Equal(got.Reserved, []netip.Addr{ip("10.9.8.53")}) || got.Host() != ip("10.9.8.1") {
		t.Errorf("%+v", got)
	}
}

func TestFollowing(t *testing.T) {
	for from, want := range map[string][]string{
		"192.168.254.0/24": {"192.168.254.0/24", "192.168.255.0/24", "192.168.0.0/24"},
		"10.255.0.0/16":    {"10.255.0.0/16", "10.0.0.0/16", "10.1.0.0/16"},
		"8.8.8.0/24":       {"8.8.8.0/24"},
	} {
		var got []string
		for p := range ippool.Following(prefix(from)) {
			if got = append(got, p.String()); len(got) == len(want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %s: %v, want %v", from, got, want)
		}
	}
}

// A prefix that is chosen has no address in common with one in use, and none before it was free.
func TestFreePrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		candidates := rapid.SliceOf(rapid.Map(rapid.IntRange(0, 15), func(n int) netip.Prefix {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n), 0, 0}), 16)
		})).Draw(t, "candidates")
		used := rapid.SliceOf(rapid.Custom(func(t *rapid.T) netip.Prefix {
			at := netip.AddrFrom4([4]byte{10, byte(rapid.IntRange(0, 15).Draw(t, "number")), 0, 0})
			return netip.PrefixFrom(at, rapid.IntRange(12, 24).Draw(t, "bits")).Masked()
		})).Draw(t, "used")
		got, ok := ippool.FreePrefix(slices.Values(candidates), used)
		for _, p := range candidates {
			isFree := !slices.ContainsFunc(used, p.Overlaps)
			switch {
			case p == got && ok && isFree:
				return
			case isFree:
				t.Fatalf("%s is free, and %s was chosen", p, got)
			}
		}
		if ok {
			t.Fatalf("%s was chosen of %v", got, candidates)
		}
	})
}

// host holds what a project remembers of the machines of one network, and what exists.
type host struct {
	pool     ippool.Pool
	wanted   map[string]netip.Addr // in the files; zero: auto
	recorded map[string]netip.Addr // reserved or made
	exists   map[string]netip.Addr // as the system has it, those of others included
}

// plan chooses an address for each wanted machine, as a plan does.
func (h *host) plan() map[string]netip.Addr {
	book := ippool.Book{Pool: h.pool}
	for _, of := range []map[string]netip.Addr{h.recorded, h.exists} {
		for name, ip := range of {
			book.Hold(ip, name)
		}
	}
	for _, ip := range h.wanted {
		if ip.IsValid() {
			book.Ask(ip)
		}
	}
	chosen := map[string]netip.Addr{}
	for _, name := range sorted(h.wanted) {
		had := h.recorded[name]
		if !had.IsValid() {
			had = h.exists[name]
		}
		if literal := h.wanted[name]; literal.IsValid() {
			if !book.IsOthers(literal, name) { // else the plan is blocked
				book.Hold(literal, name)
				chosen[name] = literal
			}
			continue
		}
		if book.Keep(name, had) {
			chosen[name] = had
		} else if ip, ok := book.Choose(name, had); ok {
			chosen[name] = ip
		}
	}
	return chosen
}

func sorted(all map[string]netip.Addr) []string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Whatever the order in which machines are wanted, reserved, made, given up and removed, with runs that end in between, no
// two have one address, and none gets another one than it had.
//
// row A06, of the choice
// row A09, of the choice
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := host{
			pool: ippool.Pool{Prefix: prefix("10.0.0.0/28"), Reserved: []netip.Addr{ip("10.0.0.5")}}, wanted: map[string]netip.Addr{},
			recorded: map[string]netip.Addr{}, exists: map[string]netip.Addr{},
		}
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
		any := rapid.Map(rapid.IntRange(2, 14), func(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}) })
		t.Repeat(map[string]func(*rapid.T){
			"want auto": func(t *rapid.T) { h.wanted[name.Draw(t, "name")] = netip.Addr{} },
			"want one":  func(t *rapid.T) { h.wanted[name.Draw(t, "name")] = any.Draw(t, "address") },
			"give up":   func(t *rapid.T) { delete(h.wanted, name.Draw(t, "name")) },
			"others make": func(t *rapid.T) {
				ip := any.Draw(t, "address")
				if !slices.Contains(values(h.exists), ip) && !slices.Contains(values(h.recorded), ip) {
					h.exists["other "+ip.String()] = ip
				}
			},
			"others remove": func(t *rapid.T) { delete(h.exists, "other "+any.Draw(t, "address").String()) },
			"apply in part": func(t *rapid.T) {
				before := h.plan()
				for _, n := range sorted(before) {
					h.recorded[n] = before[n]
					if rapid.Bool().Draw(t, "ends after the reservation of "+n) {
						break
					}
					h.exists[n] = before[n]
					if rapid.Bool().Draw(t, "ends after making "+n) {
						break
					}
				}
				for _, n := range []string{"a", "b", "c", "d", "e", "f"} {
					if _, wanted := h.wanted[n]; !wanted && rapid.Bool().Draw(t, "removes "+n) {
						delete(h.exists, n)
						delete(h.recorded, n)
					}
				}
			},
			"lose the records": func(*rapid.T) { h.recorded = map[string]netip.Addr{} },
			"": func(t *rapid.T) {
				chosen, used := h.plan(), map[netip.Addr]string{}
				for n, ip := range h.exists {
					used[ip] = n
				}
				for n, ip := range chosen {
					if !h.pool.Fits(ip) || !h.wanted[n].IsValid() && h.recorded[n] != ip && h.exists[n] != ip && ip == h.pool.Reserved[0] {
						t.Fatalf("%s gets %s", n, ip)
					}
					if other, taken := used[ip]; taken && other != n {
						t.Fatalf("%s and %s get %s", n, other, ip)
					}
					used[ip] = n
					had := h.recorded[n]
					if !had.IsValid() {
						had = h.exists[n]
					}
					for other, literal := range h.wanted {
						if !had.IsValid() && !h.wanted[n].IsValid() && other != n && literal == ip {
							t.Fatalf("%s gets %s, for which %s asks", n, ip, other)
						}
					}
					if had.IsValid() && !h.wanted[n].IsValid() && ip != had {
						t.Fatalf("%s had %s and gets %s", n, had, ip)
					}
				}
			},
		})
	})
}

func values(all map[string]netip.Addr) []netip.Addr {
	var list []netip.Addr
	for _, ip := range all {
		list = append(list, ip)
	}
	return list
}
