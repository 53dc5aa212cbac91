package spec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"vmctl/spec"
)

// If several run at once, one writes its id, and the others see that one.
func TestInitSeveralAtOnce(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.vmctl.hcl"), []byte("vm \"a\" {}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		seen := make([]string, 4)
		for i := range seen {
			all.Go(func() {
				path, _, err := spec.Init(dir, fmt.Sprintf("project-%d", i), newID)
				if err != nil {
					t.Error(err)
					return
				}
				content, err := os.ReadFile(path)
				if err != nil {
					t.Error(err)
				}
				seen[i] = string(content)
			})
		}
		all.Wait()
		for _, content := range seen {
			if content != seen[0] {
				t.Fatalf("one read\n%s\nand another\n%s", seen[0], content)
			}
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 2 {
			t.Fatalf("%d files, %v; want 2", len(files), err)
		}
	}
}
