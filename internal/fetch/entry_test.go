package fetch_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vmctl/internal/fetch"
	"vmctl/internal/lockfile"
)

// download puts a download into a cache, as Get leaves it.
func download(t *testing.T, c *fetch.Cache, key string, age time.Duration, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(c.Dir, key, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
}

// Downloads are listed, the oldest first, and removed, but for one that somebody is at work on.
func TestDownloadsAreListedAndRemoved(t *testing.T) {
	c := &fetch.Cache{Dir: filepath.Join(t.TempDir(), "none")}
	if all, err := c.List(t.Context()); err != nil || len(all) > 0 {
		t.Fatalf("an empty cache has %v, %v", all, err)
	}
	whole := "sha256-" + digest("abc")
	download(t, c, "b", time.Hour, map[string]string{whole: "abc", "origin.json": `{"url":"https://me:pass@example.org/a"}`, "lock": ""})
	download(t, c, "a", time.Minute, map[string]string{"part": "ab", "part.json": `{"url":"https://example.org/b"}`})
	download(t, c, "c", 0, map[string]string{"lock": ""})
	all, err := c.List(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	for i, want := range []fetch.Entry{
		{Key: "b", URL: "https://me:xxxxx@example.org/a", SHA256: digest("abc"), Size: 3},
		{Key: "a", URL: "https://example.org/b", Size: 2},
	} {
		if all[i].Since.IsZero() {
			t.Errorf("%s has no time", want.Key)
		}
		if all[i].Since = (time.Time{}); all[i] != want {
			t.Errorf("%+v, want %+v", all[i], want)
		}
	}

	held, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: filepath.Join(c.Dir, "a", "lock")})
	if err != nil {
		t.Fatal(err)
	}
	if all, err = c.List(t.Context()); err != nil || !all[1].Busy || all[0].Busy {
		t.Errorf("%+v, %v", all, err)
	}
	var busy *lockfile.HeldError
	if err := c.Remove(t.Context(), "a"); !errors.As(err, &busy) {
		t.Errorf("a download at work: %v", err)
	}
	if err := errors.Join(held.Release(), c.Remove(t.Context(), "a"), c.Remove(t.Context(), "b")); err != nil {
		t.Fatal(err)
	}
	if all, err := c.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

// What cannot be read is told.
func TestAListThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := (&fetch.Cache{Dir: dir}).List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("a file of another is taken for a download: %v, %v", all, err)
	}
	if all, err := (&fetch.Cache{Dir: filepath.Join(dir, "file")}).List(t.Context()); err == nil {
		t.Errorf("a file has %v", all)
	}
	if err := (&fetch.Cache{Dir: dir}).Remove(t.Context(), "none"); err == nil {
		t.Error("what is not there was removed")
	}
}
