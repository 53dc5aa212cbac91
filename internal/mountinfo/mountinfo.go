// Package mountinfo reads which file systems are mounted where.
package mountinfo

import (
	"fmt"
	"slices"
	"strings"
)

// Entry is one line of the kernel's list of mounts.
type Entry struct {
	Kind   string // of the file system
	Source string
	Path   string // where it is mounted
}

// Parse reads the kernel's list of mounts (proc(5), /proc/pid/mountinfo). Of mounts on one another, the list has the lowest one
// first.
func Parse(text string) ([]Entry, error) {
	var all []Entry
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		before, after, found := strings.Cut(line, " - ")
		fields, system := strings.Split(before, " "), strings.Split(after, " ")
		if !found || len(fields) < 6 || len(system) < 2 {
			return nil, fmt.Errorf("read the list of mounts: %q is not understood", line)
		}
		all = append(all, Entry{Kind: unescaped(system[0]), Source: unescaped(system[1]), Path: unescaped(fields[4])})
	}
	return all, nil
}

// In returns the paths of those mounts that are on a folder or on anything below it, sorted. The path of the folder is absolute, and
// has no symbolic links.
func In(dir string, all []Entry) []string {
	var found []string
	for _, e := range all {
		if e.Path == dir || strings.HasPrefix(e.Path, strings.TrimSuffix(dir, "/")+"/") {
			found = append(found, e.Path)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
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
