package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// ObjectName returns the name of an address's object if its spec names none. Different addresses,
// projects and instances of a project get different names: project, environment, label and key
// are joined by characters that none of them can hold, since a key's other bytes are written as
// =XX.
func ObjectName(p providers.Project, a spec.Address) string {
	var b strings.Builder
	b.WriteString(p.Name)
	if p.Env != "" {
		b.WriteString("+" + p.Env)
	}
	b.WriteString("." + a.Name)
	if a.Key == "" {
		return b.String()
	}
	b.WriteByte('.')
	for i := range len(a.Key) {
		c := a.Key[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// ObjectID returns the UUID of an address's object. It is chosen before the object exists, so
// that vmctl finds the object again after a crash. It follows from the lineage, the address, the
// number of times that the address was replaced, and the ID of the data directory: two data
// directories that make an object at once use two IDs (RFC 9562, version 8).
func ObjectID(p providers.Project, a spec.Address, replaced int) providers.ID {
	text := fmt.Appendf(nil, "vmctl object\x00%s\x00%s\x00%d", p.Lineage(), a, replaced)
	if p.DataDirID != "" {
		text = fmt.Appendf(text, "\x00%s", p.DataDirID)
	}
	sum := sha256.Sum256(text)
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u)
	return providers.ID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}

// decideAfter returns the addresses that are decided before each address: the addresses that it
// uses, and the holder of the name that it is to get.
func (d *differ) decideAfter(all []spec.Address) map[spec.Address][]spec.Address {
	after := usesOf(d.config, d.state, all)
	for _, a := range all {
		if inside := d.state.Records[a].Inside; inside != (spec.Address{}) {
			after[a] = append(slices.Clip(after[a]), inside)
		}
		system := d.world.placed[a]
		if system == "" {
			continue
		}
		o := d.observations.indexes[system].byName[nameKey{a.Kind, d.name(a)}]
		if o == nil {
			continue
		}
		for _, other := range d.observations.taken[string(o.ID)] {
			if other != a && other.Kind == a.Kind {
				after[a] = append(slices.Clip(after[a]), other)
			}
		}
		if to, led := d.world.led[o]; led && to != a {
			after[a] = append(slices.Clip(after[a]), to)
		}
	}
	return after
}

// ownerOf returns the other address to which an object belongs, by its record or by its mark.
// Zero: it belongs to none of this project.
func (d *differ) ownerOf(c *Change, o *providers.Object) spec.Address {
	for _, a := range d.observations.taken[string(o.ID)] {
		if a != c.Address && a.Kind == o.Kind && !d.observations.isUnowned(a, o) {
			return a
		}
	}
	if MarkingOf(o, d.options.Project) == Ours && d.world.addressOf(o) != c.Address {
		return d.world.addressOf(o)
	}
	return spec.Address{}
}

// freeName returns the name for an object that is made. A name that vmctl derives gets a suffix
// if another resource of the project has it and keeps it, since names are sticky.
func (d *differ) freeName(c *Change) string {
	if nameOf(c.Change.Want) != "" {
		return c.Name
	}
	o := d.observations.indexes[c.System].byName[nameKey{c.Kind, c.Name}]
	if o == nil || o.ID == c.ID {
		return c.Name
	}
	other := d.ownerOf(c, o)
	if other == (spec.Address{}) {
		return c.Name
	}
	holder, decided := d.decided[other]
	if decided && d.scope[other] && holder.Blocked == nil && holder.Object == o &&
		(holder.Action == providers.Destroy || holder.Action == providers.ReplaceIt && holder.Name != o.Name) {
		return c.Name
	}
	return c.Name + "~" + string(c.ID[:8])
}

// chooseID chooses the ID of an object that is to be made. No other object has that ID, such as
// one that was moved away from this address, or that the state let go of.
func (d *differ) chooseID(c *Change) {
	for c.ID = ObjectID(d.options.Project, c.Address, c.Replaced); d.isTaken(c); c.ID = ObjectID(d.options.Project, c.Address, c.Replaced) {
		c.Replaced++
	}
}

func (d *differ) isTaken(c *Change) bool {
	if a, recorded := d.recorded[c.ID]; recorded && a != c.Address {
		return true
	}
	if _, forgotten := d.state.Forgotten[string(c.ID)]; forgotten { // its object may still exist, and Observe did not ask for it
		return true
	}
	in := d.observations.indexes[c.System]
	if _, unread := in.unknownID[idKey{c.Kind, c.ID}]; unread {
		return true
	}
	o, exists := in.byID[idKey{c.Kind, c.ID}]
	return exists && (o != c.Object || c.Action == providers.ReplaceIt)
}
