package terraform

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// prefix begins the names of the workspaces that vmctl makes, separator stands between their parts: the
// lineage, the address, and the ID.
const (
	prefix    = "vmctl"
	separator = "--"
)

// longestPart limits the length of an encoded lineage or address: a longer one is a digest. Backends take names of
// at least 90 bytes.
const longestPart = 22

// workspaceName returns the name of the workspace of an object.
func workspaceName(lineage string, a spec.Address, id providers.ID) string {
	return strings.Join([]string{prefix, encode(lineage), encode(addressText(a)), digits(id)}, separator)
}

// digits returns an ID as it is in the name of a workspace.
func digits(id providers.ID) string { return strings.ReplaceAll(string(id), "-", "") }

// workspace is a workspace that vmctl made.
type workspace struct {
	name    string
	lineage string // encoded
	address string // encoded
	id      providers.ID
}

// parseWorkspace takes the name of a workspace apart. false: vmctl did not make it.
func parseWorkspace(name string) (workspace, bool) {
	parts := strings.Split(name, separator)
	if len(parts) != 4 || parts[0] != prefix || !idPattern.MatchString(parts[3]) {
		return workspace{}, false
	}
	h := parts[3]
	id := h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	return workspace{name: name, lineage: parts[1], address: parts[2], id: providers.ID(id)}, true
}

// at returns the address in the name of a workspace. false: only its digest is in it.
func (w workspace) at() (spec.Address, bool) {
	text, ok := decode(w.address)
	if !ok {
		return spec.Address{}, false
	}
	name, key, _ := strings.Cut(text, "[")
	return spec.Address{Kind: spec.VM, Name: name, Key: key}, true
}

func addressText(a spec.Address) string {
	if a.Key == "" {
		return a.Name
	}
	return a.Name + "[" + a.Key
}

// digestMark begins an encoded text of which only the digest is kept: no byte is encoded so.
const digestMark = "-zz"

// encode writes a text in lower case letters, digits and single hyphens, which every backend takes: any other
// byte is a hyphen and two digits.
func encode(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "-%02x", c)
		}
	}
	if b.Len() <= longestPart {
		return b.String()
	}
	sum := sha256.Sum256([]byte(text))
	return digestMark + hex.EncodeToString(sum[:9])
}

// decode reads an encoded text. false: it is a digest.
func decode(encoded string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(encoded); i++ {
		if encoded[i] != '-' {
			b.WriteByte(encoded[i])
			continue
		}
		if i+2 >= len(encoded) {
			return "", false
		}
		c, err := strconv.ParseUint(encoded[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), true
}
