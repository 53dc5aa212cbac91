package terraform

import (
	"os"
	"path/filepath"
	"strings"
)

// overlayFile overrides the backend of a module, or its cloud block. Source: developer.hashicorp.com/terraform/language/files/override
const (
	overlayFile = "zz_vmctl_override.tf"
	overlayText = "terraform {\n  backend \"local\" {}\n}\n"
)

// overlay makes a folder below root that shows a module as one with a local backend, and returns it. What lies beside the module
// and its parents is beside it, too: a module may refer to it by ../. Everything but the folders is a link.
func overlay(root, module string) (string, error) {
	at, from := filepath.Join(root, "overlay"), string(filepath.Separator)
	parts := strings.Split(strings.Trim(module, from), from)
	for _, part := range parts {
		if err := linkAll(from, at, func(name string) bool { return name == part }); err != nil {
			return "", err
		}
		from, at = filepath.Join(from, part), filepath.Join(at, part)
	}
	err := linkAll(from, at, func(name string) bool {
		return name == ".terraform" || strings.Contains(name, ".tfstate") // of Terraform without vmctl
	})
	if err != nil {
		return "", err
	}
	return at, os.WriteFile(filepath.Join(at, overlayFile), []byte(overlayText), 0o600)
}

// linkAll makes a folder with links to everything in another one, except what without says. A folder that cannot be listed has
// nothing.
func linkAll(from, to string, without func(name string) bool) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	entries, _ := os.ReadDir(from) //nolint:errcheck // Terraform tells what it misses
	for _, e := range entries {
		if without(e.Name()) {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
