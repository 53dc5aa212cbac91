package buildcontext_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"vmctl/internal/buildcontext"
)

// A folder that is ignored does not have to be readable: the data of a database in a container of others is a usual one.
func TestIgnoredFolderIsNotRead(t *testing.T) {
	dir := folder(t, map[string]string{"Dockerfile": "", ".dockerignore": "data\n!other/**/*.sql\n", "data/": "", "a": ""})
	first := digest(t, dir, "Dockerfile")
	if err := os.Chmod(filepath.Join(dir, "data"), 0); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if os.Geteuid() == 0 { // root reads everything
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Setfsuid(0); err != nil {
				t.Error(err)
			}
		}()
	}
	if _, err := os.ReadDir("data"); err == nil {
		t.Fatal("the folder can be read")
	}
	sum, err := buildcontext.Context{Dir: ".", Dockerfile: "Dockerfile"}.Digest()
	if err != nil || sum != first {
		t.Errorf("its digest is %s, %v, want %s", sum, err, first)
	}
}
