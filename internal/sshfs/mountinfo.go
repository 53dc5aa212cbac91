package sshfs

import (
	"fmt"
	"strings"
)

// entry is one line of the kernel's list of mounts.
type entry struct{ kind, source, path string }

// kindOfMount is the file system's type in the list of mounts.
const kindOfMount = "fuse.sshfs"

// parse reads the kernel's list of mounts (proc(5), /proc/pid/mountinfo). Of mounts on one another, the list has the lowest one
// first.
func parse(text string) ([]entry, error) {
	var all []entry
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		before, after, found := strings.Cut(line, " - ")
		fields, system := strings.Split(before, " "), strings.Split(after, " ")
		if !found || len(fields) < 6 || len(system) < 2 {
			return nil, fmt.Errorf("read the list of mounts: %q is not understood", line)
		}
		all = append(all, entry{kind: unescaped(system[0]), source: unescaped(system[1]), path: unescaped(fields[4])})
	}
	return all, nil
}

// unescaped returns a field of the list, in which the kernel writes a blank, a tab, a line end and a backslash as \ and three
// octal digits.
func unescaped(field string) string {
	var b strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] == '\\' && i+3 < len(field) && isOctal(field[i+1:i+4]) {
			b.WriteByte((field[i+1]-'0')<<6 | (field[i+2]-'0')<<3 | (field[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(field[i])
	}
	return b.String()
}

func isOctal(s string) bool { return strings.Trim(s, "01234567") == "" && s[0] < '4' }

// mounts returns those mounts of sshfs that nothing is mounted over.
func mounts(all []entry) []Mount {
	last := map[string]int{}
	for i, e := range all {
		last[e.path] = i
	}
	var found []Mount
	for i, e := range all {
		if e.kind == kindOfMount && last[e.path] == i {
			found = append(found, Mount{Source: e.source, Path: e.path})
		}
	}
	return found
}
