package state

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/spec"
)

// Provision remembers a script of a VM (provision NAME).
type Provision struct {
	// Digest is the digest of the script and the variables that ran to their end, as
	// DigestKey.Provision makes it; "": none did.
	Digest string `json:"digest,omitempty"`
	// Starts is Record.Starts when they ran.
	Starts int `json:"starts,omitempty"`
	// Failed is the reason why the last run did not succeed; "": it did. Digest and Starts are then
	// those of the run before.
	Failed string `json:"failed,omitempty"`
}

const (
	// plainDigest begins the digests of scripts without a secret: they need no key.
	plainDigest = "sha256:"
	// noDigest stands for the digest of a script with a secret if there is no key, and of a script that
	// is not wholly known. It equals every other digest.
	noDigest = "none"
)

// Provision returns the digest of a script and its variables: a block of provision, wholly known. The
// digest needs the key only if one of them is sensitive.
func (k DigestKey) Provision(object, name string, block cty.Value) string {
	if len(spec.SensitiveValues(block)) == 0 {
		if hash, known := hashOf(block); known {
			return plainDigest + hash
		}
		return noDigest
	}
	if digest := k.Digest(object, "provision."+name, scriptOf(block)); digest != "" {
		return digest
	}
	return noDigest
}

// Provisioned reports whether a digest that Provision made is of a block. known is false if another key made
// it, or if the block is not wholly known: then nobody can say, and same is true.
func (k DigestKey) Provisioned(digest, object, name string, block cty.Value) (same, known bool) {
	if strings.HasPrefix(digest, plainDigest) {
		hash, known := hashOf(block)
		return !known || digest == plainDigest+hash, known
	}
	if !k.Made(digest) {
		return true, false
	}
	now := k.Digest(object, "provision."+name, scriptOf(block))
	return now == "" || digest == now, now != ""
}

// scriptOf returns the script and the variables of a block of provision, without marks.
func scriptOf(block cty.Value) cty.Value {
	env := spec.Revealed(ctyread.Attr(block, "env"))
	if env == cty.NilVal || env.IsNull() {
		env = cty.MapValEmpty(cty.String)
	}
	return cty.ObjectVal(map[string]cty.Value{"script": spec.Revealed(ctyread.Attr(block, "script")), "env": env})
}

// hashOf returns a digest of a script and its variables; false: they are not wholly known.
func hashOf(block cty.Value) (hash string, known bool) {
	text, err := appendPlain(nil, scriptOf(block))
	if err != nil {
		return "", false
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), true
}
