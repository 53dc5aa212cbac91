package spec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Suffix ends the name of every spec file.
const Suffix = ".vmctl.hcl"

// The largest files that are read at once. maxSpecBytes has room for twenty
// thousand machines, and the scanner takes two seconds for the worst of it.
const (
	maxSpecBytes = 2 << 20
	maxTextBytes = 8 << 20 // that functions read
)

// SpecFiles returns the paths of the spec files of a folder, dir joined with
// each name, sorted. Hidden files are no spec files. A folder without spec files
// is no error; one that cannot be read is.
func SpecFiles(dir string) ([]string, error) { //nolint:revive // Files are those of a Config
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the folder of the spec: %w", err)
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), Suffix) && !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// readText reads a file that people write. It never waits for a pipe or reads
// without end.
func readText(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer closeRead(f)
	src, err := io.ReadAll(io.LimitReader(f, maxSpecBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(src) > maxSpecBytes:
		return nil, fmt.Errorf("it is larger than %s", FormatSize(maxSpecBytes))
	}
	return src, nil
}

// openRegular opens a file for reading, and nothing else: opening a pipe could wait for ever.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, reason(err)
	}
	if err := mustBeRegular(info); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, reason(err)
	}
	return f, nil
}

func mustBeRegular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("it is a folder")
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	}
	return nil
}

// closeRead closes a file that was only read.
func closeRead(f io.Closer) {
	_ = f.Close() //nolint:errcheck // nothing was written, so nothing can be lost
}

// reason returns the cause of an error about a file, whose path the message already has.
func reason(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// parseFile reads and parses one spec file. The file is nil where it could not
// be read or must not be parsed.
func parseFile(path string) (*hcl.File, hcl.Diagnostics) {
	src, err := readText(path)
	if err != nil {
		return nil, hcl.Diagnostics{{
			Severity: hcl.DiagError,
			Summary:  "Unreadable spec file",
			Detail:   fmt.Sprintf("`%s` could not be read: %s. Make it a readable file, or give it a name that does not end in `%s`.", path, err, Suffix),
		}}
	}
	return parseSource(src, path)
}
