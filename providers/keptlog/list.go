package keptlog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vmctl/spec"
)

// Kept holds the kept logs of one VM.
type Kept struct {
	Dir   string
	Files []string // paths, sorted
	at    time.Time
}

// List returns the kept logs of the VMs of an address, those that were kept last at the end. folder is that of the
// providers' settings.
func List(folder string, a spec.Address) ([]Kept, error) {
	all, err := list(addressFolder(folder, a))
	if err != nil {
		return nil, fmt.Errorf("look for the logs of %s that were kept: %w", a, err)
	}
	return all, nil
}

func list(folder string) ([]Kept, error) {
	dirs, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Kept
	for _, e := range dirs {
		if strings.HasPrefix(e.Name(), temp) {
			continue
		}
		k := Kept{Dir: filepath.Join(folder, e.Name())}
		info, failed := e.Info()
		files, unread := os.ReadDir(k.Dir)
		if failed := errors.Join(failed, unread); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		for _, f := range files {
			k.Files = append(k.Files, filepath.Join(k.Dir, f.Name()))
		}
		k.at = info.ModTime()
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b Kept) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.Dir, b.Dir)) })
	return all, err
}

// VMs is the number of VMs of one address whose logs are kept.
const VMs = 5

// prune removes the oldest logs of an address.
func prune(folder string) error {
	all, err := list(folder)
	for _, old := range all[:max(0, len(all)-VMs)] {
		err = errors.Join(err, os.RemoveAll(old.Dir))
	}
	return err
}

// addressFolder returns the folder of the kept logs of an address.
func addressFolder(folder string, a spec.Address) string {
	return filepath.Join(folder, fileName(a.String()))
}

// fileName returns a name for a file, different for each text: vm.dev for vm.dev.
func fileName(text string) string {
	const longest = 120
	if name := url.QueryEscape(text); len(name) <= longest && !strings.HasPrefix(name, ".") {
		return name
	}
	sum := sha256.Sum256([]byte(text))
	return "=" + hex.EncodeToString(sum[:16]) // no escaped text has an equals sign
}
