package machine

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/spec"
)

// SectorBytes is the size of the smallest part of a disk.
const SectorBytes = 512

// WholeSectors returns a flaw if the size in the attributes of a disk is no multiple of a sector: the
// disk would be made larger, and its spec would ask for ever to shrink it. path is the path of size.
func WholeSectors(disk cty.Value, path string) []spec.Flaw {
	size := ctyread.Uint(disk, "size")
	if size%SectorBytes == 0 { // also one that is not known yet
		return nil
	}
	return []spec.Flaw{{
		Path: path, Summary: "Impossible size",
		Detail: fmt.Sprintf("A disk has whole sectors of %d bytes, and %d is not a multiple of %[1]d. The next larger size is `%[3]dB`.",
			SectorBytes, size, (size/SectorBytes+1)*SectorBytes),
	}}
}
