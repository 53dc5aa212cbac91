package wsl

import (
	"cmp"
	"errors"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows/registry"
)

// registered reads the registrations of WSL from the registry: a key for each, with the name, the folder
// and, unless it is ext4.vhdx, the file of the root disk.
func registered() (all []Registration, err error) {
	const path = `Software\Microsoft\Windows\CurrentVersion\Lxss`
	root, err := registry.OpenKey(registry.CURRENT_USER, path, registry.ENUMERATE_SUB_KEYS)
	if errors.Is(err, registry.ErrNotExist) { // nothing was ever registered
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	names, err := root.ReadSubKeyNames(-1)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		r, err := registration(path + `\` + name)
		if err != nil {
			return nil, err
		}
		if r.Name != "" {
			all = append(all, r)
		}
	}
	return all, nil
}

// registration reads one key. A key that is no distribution has no name.
func registration(path string) (r Registration, err error) {
	key, err := registry.OpenKey(registry.CURRENT_USER, path, registry.QUERY_VALUE)
	if errors.Is(err, registry.ErrNotExist) { // unregistered meanwhile
		return Registration{}, nil
	}
	if err != nil {
		return Registration{}, err
	}
	defer func() { err = errors.Join(err, key.Close()) }()
	var values [3]string
	for i, name := range []string{"DistributionName", "BasePath", "VhdFileName"} {
		value, _, err := key.GetStringValue(name)
		if err != nil && !errors.Is(err, registry.ErrNotExist) {
			return Registration{}, err
		}
		values[i] = value
	}
	folder := strings.TrimPrefix(values[1], `\\?\`)
	return Registration{Name: values[0], Folder: folder, Disk: filepath.Join(folder, cmp.Or(values[2], "ext4.vhdx"))}, nil
}
