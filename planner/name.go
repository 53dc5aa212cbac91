package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// ObjectName is the name that the object of an address gets when its spec names
// none. Different addresses, projects and instances of a project get different
// names: project, environment, label and key are joined by characters that none
// of them can hold, since a key's other bytes are written as =XX.
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

// ObjectID is the UUID of the object that an address gets. It is chosen before
// the object exists, so that a crash finds it again. It follows from the
// lineage, the address and how often the address was replaced (RFC 9562,
// version 8).
func ObjectID(p providers.Project, a spec.Address, replaced int) providers.ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "vmctl object\x00%s\x00%s\x00%d", p.Lineage(), a, replaced))
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u)
	return providers.ID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}
