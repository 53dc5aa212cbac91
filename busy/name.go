package busy

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"regexp"

	"vmctl/spec"
)

// plainName fits an address that is a good file name, on a file system that does
// not tell large letters from small ones too. It has one dot: no address is
// another's door or seat.
var plainName = regexp.MustCompile(`^[a-z_]+\.[a-z0-9_-]{1,48}$`)

// fileName is the name of an address's lock: the address itself where that is
// short and plain, else its digest. No two addresses have the same.
func fileName(addr spec.Address) string {
	text := addr.String()
	if plainName.MatchString(text) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return string(addr.Kind) + "=" + hex.EncodeToString(sum[:16]) // no address holds an equals sign outside of a key
}

func (f Folder) inside(addr spec.Address) string     { return filepath.Join(f.Dir, fileName(addr)) }
func (f Folder) closedPath(addr spec.Address) string { return f.inside(addr) + ".door" }
