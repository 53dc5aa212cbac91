package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Downloads are listed and removed, by key and by age.
func TestCache(t *testing.T) {
	h := newHouse(t, "")
	h.run("cache", "list").exits(0).says("There are no downloads in ")
	h.run("cache", "prune").exits(0).says("Nothing was removed.")
	dir := filepath.Join(h.home, ".cache", "vmctl", "download")
	keep := func(key, file, text string, age time.Duration) {
		t.Helper()
		path := filepath.Join(dir, key, file)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
		if err = errors.Join(err, os.Chtimes(path, time.Time{}, noon().Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	keep("new", "part", string(make([]byte, 1536)), 0)
	keep("new", "part.json", `{"url":"https://example.org/image"}`, 0)
	keep("old", "part", "x", 48*time.Hour)
	h.run("cache", "list").exits(0).says(
		"old part, 1 bytes, since 2026-02-27T12:00:00Z: -", "new part, 1.5 KiB, since 2026-03-01T12:00:00Z: https://example.org/image",
		"2 downloads in "+dir, "vmctl cache prune")
	h.run("cache", "list", "--json").exits(0).says(`"key": "old"`, `"state": "part"`, `"size": 1536`)

	h.run("cache", "prune", "none").exits(3).warns("the cache has none of that key", "vmctl cache list")
	h.run("cache", "prune", "--older-than=24h").exits(0).says("old part", "Removed: 1 downloads")
	h.run("cache", "prune", "new", "--json").exits(0).says(`"key": "new"`)
	h.run("cache", "list").exits(0).says("There are no downloads in ")

	h.environ = []string{"HOME=relative"}
	h.run("cache", "list").exits(3).warns("neither HOME nor XDG_CACHE_HOME names a folder")
	h.run("cache", "prune").exits(3).warns("neither HOME nor XDG_CACHE_HOME names a folder")
}
