package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

var _ variableReader = linux{}

// HasVariable implements variableReader.
func (l linux) HasVariable(pid int, entry string) (has, known bool) {
	data, err := os.ReadFile(filepath.Join(l.proc, strconv.Itoa(pid), "environ"))
	if err != nil {
		return false, true
	}
	return slices.Contains(strings.Split(string(data), "\x00"), entry), len(data) > 0
}
