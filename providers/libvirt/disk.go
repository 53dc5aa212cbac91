package libvirt

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
)

// store describes a disk that the spec wants.
type store struct {
	Size   uint64 // bytes
	Format string // raw, qcow2
}

func storeOf(v cty.Value) (store, error) {
	if !ctyread.Known(v) {
		return store{}, fmt.Errorf("it has no attributes")
	}
	return store{Size: ctyread.Uint(v, "size"), Format: ctyread.Text(v, "format")}, nil
}
