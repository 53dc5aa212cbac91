package sim

import (
	"path/filepath"

	"vmctl/providers"
	"vmctl/spec"
)

// knowns finds the addresses of a query by the ID of the object or by its import.
type knowns struct {
	byID    map[providers.ID]providers.Known
	imports []providers.Known
}

func knownOf(q providers.Query) knowns {
	k := knowns{byID: map[providers.ID]providers.Known{}}
	for _, one := range q.Known {
		if one.Import != "" {
			k.imports = append(k.imports, one)
		}
		if one.ID != "" {
			k.byID[one.ID] = one
		}
	}
	return k
}

// isRecorded reports whether a record has the ID or the name of an object that could not be read: its file may not tell its ID.
func (k knowns) isRecorded(u providers.Unknown) bool {
	for _, one := range k.byID {
		if one.Kind == u.Kind && (one.ID == u.ID || one.Name == u.Name) {
			return true
		}
	}
	return false
}

// find finds the objects that imports name: by name, ID or path of the file.
func (v *viewer) find() {
	for _, one := range v.known.imports {
		for _, o := range v.inv.Objects {
			if o.Kind == one.Kind && v.means(string(one.Import), o.Kind, o.ID, o.Name) {
				v.inv.Found[one.Address] = o.ID
			}
		}
		for _, u := range v.inv.Unknown {
			if u.Kind == one.Kind && v.means(string(one.Import), u.Kind, u.ID, u.Name) {
				v.inv.Found[one.Address] = u.ID
			}
		}
	}
}

func (p *Provider) means(said string, kind spec.Kind, id providers.ID, name string) bool {
	path := p.vmPath(name)
	switch kind { //nolint:exhaustive // it has no other kinds
	case spec.Disk:
		path = p.diskPath(name)
	case spec.Network:
		path = p.networkPath(name)
	}
	return said == name || said == string(id) || filepath.IsAbs(said) && filepath.Clean(said) == path
}
