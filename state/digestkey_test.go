package state_test

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/state"
)

func TestDigestKey(t *testing.T) {
	folder := state.Folder{Dir: filepath.Join(t.TempDir(), "data")}
	none, err := folder.DigestKey()
	if err != nil || none.Digest("1", "a", cty.StringVal("x")) != "" || none.Made("") {
		t.Errorf("a folder without a key has %+v, %v", none, err)
	}
	var made [8]string
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			k, err := folder.MakeDigestKey(rand.Reader)
			if err != nil {
				t.Error(err)
			}
			made[i] = k.Digest("1", "a", cty.StringVal("x"))
		})
	}
	all.Wait()
	k, err := folder.DigestKey()
	if err != nil {
		t.Fatal(err)
	}
	want := k.Digest("1", "a", cty.StringVal("x"))
	for _, digest := range made {
		if digest != want || !k.Made(digest) {
			t.Errorf("one process made the digest %q, another %q", digest, want)
		}
	}
	for name, other := range map[string]string{
		"another value":  k.Digest("1", "a", cty.StringVal("y")),
		"another object": k.Digest("2", "a", cty.StringVal("x")),
		"another path":   k.Digest("1", "b", cty.StringVal("x")),
		"shifted texts":  k.Digest("1a", "", cty.StringVal("x")),
		"a map":          k.Digest("1", "a", cty.MapVal(map[string]cty.Value{"x": cty.StringVal("x")})),
		"a text":         k.Text("value", "x"),
	} {
		if other == want || other == "" {
			t.Errorf("%s has the same digest: %s", name, other)
		}
	}
	path := filepath.Join(folder.Dir, "digest.key")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has the mode %v, %v", info.Mode(), err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if again, err := folder.MakeDigestKey(rand.Reader); err != nil || again.Made(want) {
		t.Errorf("a new key takes the digest of a lost one for its own (%v)", err)
	}
}

// A key that is there already stays, and nothing is written: on a full disk there is no room for it.
func TestSaveDigestKeyThatIsThere(t *testing.T) {
	folder := state.Folder{Dir: t.TempDir()}
	first, err := folder.MakeDigestKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := state.NewDigestKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1, 0)
	if err := os.Chtimes(folder.Dir, old, old); err != nil {
		t.Fatal(err)
	}
	got, err := folder.SaveDigestKey(other)
	if digest := first.Digest("1", "a", cty.True); err != nil || got.Digest("1", "a", cty.True) != digest {
		t.Errorf("it has another key than the first: %v", err)
	}
	if info, err := os.Stat(folder.Dir); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("something was written into the folder: %v", err)
	}
}

// A key that cannot be read is no missing key, and the error says what to do.
func TestUnreadableDigestKey(t *testing.T) {
	for name, test := range map[string]struct {
		make       func(path string) error
		says, next string
	}{
		"damaged":  {func(path string) error { return os.WriteFile(path, []byte("garbage"), 0o600) }, "digest.key is damaged", "put back a copy of it, or delete it"},
		"a folder": {func(path string) error { return os.Mkdir(path, 0o700) }, "is a directory", "remove that folder"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := state.Folder{Dir: t.TempDir()}
			if err := test.make(filepath.Join(folder.Dir, "digest.key")); err != nil {
				t.Fatal(err)
			}
			_, got := folder.DigestKey()
			var advised state.Advised
			if !errors.As(got, &advised) || !strings.Contains(got.Error(), test.says) || !strings.Contains(strings.Join(advised.Next(), " "), test.next) {
				t.Errorf("the error is %v, %v, want %s, %s", got, advised, test.says, test.next)
			}
		})
	}
	forbidden := &fs.PathError{Op: "open", Path: "digest.key", Err: fs.ErrPermission}
	if got := state.KeyAdvice(filepath.Join(t.TempDir(), "digest.key"), forbidden); !strings.Contains(got, "readable for this user") {
		t.Errorf("without permission, the advice is %s", got)
	}
}
