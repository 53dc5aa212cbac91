package libvirt

import (
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// request finds the addresses of a query by what they are known by. Each text maps to places in
// Known, in their order.
type request struct {
	providers.Query
	vms, disks, networks places
}

type places struct {
	ids, names, imports map[string][]int
	addresses           map[spec.Address]int // to the first place
}

func newRequest(q providers.Query) request {
	r := request{Query: q, vms: newPlaces(), disks: newPlaces(), networks: newPlaces()}
	for i, k := range q.Known {
		if k.Kind == spec.VM {
			r.vms.add(i, k)
		}
		if k.Kind == spec.Disk {
			r.disks.add(i, k)
		}
		if k.Kind == spec.Network {
			r.networks.add(i, k)
		}
	}
	return r
}

func newPlaces() places {
	return places{ids: map[string][]int{}, names: map[string][]int{}, imports: map[string][]int{}, addresses: map[spec.Address]int{}}
}

func (p places) add(i int, k providers.Known) {
	p.ids[string(k.ID)] = append(p.ids[string(k.ID)], i)
	p.names[k.Name] = append(p.names[k.Name], i)
	if k.Import != "" {
		p.imports[string(k.Import)] = append(p.imports[string(k.Import)], i)
	}
	if _, known := p.addresses[k.Address]; !known {
		p.addresses[k.Address] = i
	}
}

// sorted returns the places of several texts, in their order.
func sorted(some ...[]int) []int {
	all := slices.Concat(some...)
	slices.Sort(all)
	return slices.Compact(all)
}

// first returns the first address of some places; false: there is none.
func (r request) first(some []int) (providers.Known, bool) {
	if len(some) == 0 {
		return providers.Known{}, false
	}
	return r.Known[some[0]], true
}

// importers returns the addresses that import the domain, by its name or UUID.
func (r request) importers(s observedDomain) []spec.Address {
	var all []spec.Address
	for _, i := range sorted(r.vms.imports[s.UUID], r.vms.imports[s.Name]) {
		all = append(all, r.Known[i].Address)
	}
	return all
}

// asked reports whether the query or this project's mark asks for a domain, and returns its
// record and spec.
func (p *Provider) asked(s observedDomain, r request) (providers.Known, bool) {
	if k, ok := r.first(r.vms.ids[s.UUID]); ok {
		return k, true
	}
	at := func(a spec.Address) (providers.Known, bool) {
		i, ok := r.vms.addresses[a]
		if !ok {
			return providers.Known{}, false
		}
		return r.Known[i], true
	}
	if o := s.owner(); o != nil && o.ID == p.settings.Project.Lineage() {
		k, _ := at(o.Address)
		return k, true
	}
	if all := r.importers(s); len(all) > 0 {
		return at(all[0])
	}
	return r.first(r.vms.names[s.Name])
}

// asking returns the known disks of the query that mean a volume: by its path, by an import,
// or by the name that a new disk would get.
func (p *Provider) asking(r request, s *filePool, volume string) []providers.Known {
	at := s.file(volume).path()
	some := [][]int{r.disks.ids[at]}
	if slices.Contains(p.candidatePools(), s.Name) && volume != "" {
		for _, name := range []string{volume, nameOfVolume(volume, formatQCOW2), nameOfVolume(volume, formatRaw)} {
			some = append(some, r.disks.names[name])
		}
	}
	for _, here := range r.disks.imports {
		if imports(r.Known[here[0]], s, volume) {
			some = append(some, here)
		}
	}
	var all []providers.Known
	for _, i := range sorted(some...) {
		all = append(all, r.Known[i])
	}
	return all
}
