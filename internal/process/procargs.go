package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// parseProcargs reads what sysctl(3) of macOS calls KERN_PROCARGS2: the number
// of arguments, the path, at least one NUL, the arguments, and the environment.
func parseProcargs(data []byte) (exe string, argv []string, err error) {
	if len(data) < 4 {
		return "", nil, fmt.Errorf("the kernel's argument list has %d bytes", len(data))
	}
	count := int(int32(binary.NativeEndian.Uint32(data)))
	exe, rest, found := strings.Cut(string(data[4:]), "\x00")
	if !found {
		return "", nil, errors.New("the kernel's argument list ends in the path")
	}
	rest = strings.TrimLeft(rest, "\x00")
	for range count {
		argument, after, found := strings.Cut(rest, "\x00")
		if !found {
			return "", nil, fmt.Errorf("the kernel's argument list ends after %d of %d", len(argv), count)
		}
		argv, rest = append(argv, argument), after
	}
	return exe, argv, nil
}
