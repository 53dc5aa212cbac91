package cli

import "path/filepath"

// cacheDir returns vmctl's cache folder; "" if the environment names no place for one.
func cacheDir(getenv func(string) string) string {
	base := getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(base) { // the XDG specification: a relative one is to be ignored
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "vmctl")
}
