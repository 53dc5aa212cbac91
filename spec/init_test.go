package spec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"vmctl/spec"
)

const newID = "k7m2qd9x4r"

// TestInit compares folders before and after.
func TestInit(t *testing.T) {
	const header = "# Written by `vmctl init`. Commit it: it says which objects belong to this project.\n"
	for _, c := range []struct{ name, before, after, path string }{
		{
			name: "no block", path: "vmctl.vmctl.hcl",
			before: "-- main.vmctl.hcl --\nvm   \"a\" {}\n",
			after: "-- main.vmctl.hcl --\nvm   \"a\" {}\n-- vmctl.vmctl.hcl --\n" + header +
				"vmctl {\n  project = \"demo\"\n  id      = \"k7m2qd9x4r\"\n}\n",
		},
		{
			name: "its own file without a block", path: "vmctl.vmctl.hcl",
			before: "-- vmctl.vmctl.hcl --\nvm \"a\" {}\n",
			after:  "-- vmctl.vmctl.hcl --\nvm \"a\" {}\n\n" + header + "vmctl {\n  project = \"demo\"\n  id      = \"k7m2qd9x4r\"\n}\n",
		},
		{
			name: "a block with comments", path: "b.vmctl.hcl",
			before: "-- a.vmctl.hcl --\n-- b.vmctl.hcl --\n# top\nvmctl { # here\n  # first\n  required_version = \">= 0.1\" # why\n\n  state {\n    lock_timeout = \"1s\"\n  }\n} # end\n",
			after:  "-- a.vmctl.hcl --\n-- b.vmctl.hcl --\n# top\nvmctl { # here\n  project = \"demo\"\n  id      = \"k7m2qd9x4r\"\n  # first\n  required_version = \">= 0.1\" # why\n\n  state {\n    lock_timeout = \"1s\"\n  }\n} # end\n",
		},
		{
			name: "a project of its own", path: "main.vmctl.hcl",
			before: "-- main.vmctl.hcl --\nvmctl {\n  project = \"mine\" # ours\n\n  state {}\n}\n",
			after:  "-- main.vmctl.hcl --\nvmctl {\n  project = \"mine\" # ours\n  id      = \"k7m2qd9x4r\"\n\n  state {}\n}\n",
		},
		{
			name: "one empty line", path: "main.vmctl.hcl",
			before: "-- main.vmctl.hcl --\nvmctl {}\nvm \"a\" {}\n",
			after:  "-- main.vmctl.hcl --\nvmctl {\n  project = \"demo\"\n  id      = \"k7m2qd9x4r\"\n}\nvm \"a\" {}\n",
		},
		{
			name: "one line", path: "main.vmctl.hcl",
			before: "-- main.vmctl.hcl --\nvmctl { project = \"mine\" }\n",
			after:  "-- main.vmctl.hcl --\nvmctl {\n  project = \"mine\"\n  id      = \"k7m2qd9x4r\"\n}\n",
		},
		{
			name: "layout of its own", path: "main.vmctl.hcl",
			before: "-- main.vmctl.hcl --\nvm   \"a\" {}\nvmctl {\n}\n",
			after:  "-- main.vmctl.hcl --\nvm   \"a\" {}\nvmctl {\n  project = \"demo\"\n  id = \"k7m2qd9x4r\"\n}\n",
		},
		{
			name: "an id already", path: "main.vmctl.hcl",
			before: "-- main.vmctl.hcl --\nvmctl {\nproject=\"mine\"\nid=\"abcdefghij\"\n}\n",
			after:  "-- main.vmctl.hcl --\nvmctl {\nproject=\"mine\"\nid=\"abcdefghij\"\n}\n",
		},
		{
			name: "an empty folder", path: "vmctl.vmctl.hcl",
			after: "-- vmctl.vmctl.hcl --\n" + header + "vmctl {\n  project = \"demo\"\n  id      = \"k7m2qd9x4r\"\n}\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := unpack(t, txtar.Parse([]byte(c.before)))
			for i := range 2 { // the second time changes nothing
				path, wrote, err := spec.Init(dir, "demo", newID)
				if changes := i == 0 && c.before != c.after; changes != wrote {
					t.Errorf("it wrote: %t, and the files changed: %t", wrote, changes)
				}
				if err != nil || path != filepath.Join(dir, c.path) {
					t.Fatalf("wrote %s, %v", path, err)
				}
				if got := pack(t, dir); got != c.after {
					t.Fatalf("folder (-want +got):\n%s", cmp.Diff(c.after, got))
				}
			}
			if loaded, diags := spec.Load(dir, spec.Inputs{}); diags.HasErrors() || loaded.Settings.ID == "" {
				t.Errorf("afterwards: %q, %v", loaded.Settings.ID, diags)
			}
		})
	}
}

// pack writes the files of a folder as an archive, hidden ones too.
func pack(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var a txtar.Archive
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		a.Files = append(a.Files, txtar.File{Name: e.Name(), Data: content})
	}
	return string(txtar.Format(&a))
}

func TestInitKeepsLineEndsModeAndLinks(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	target := filepath.Join(elsewhere, "real.hcl")
	write(t, target, []byte("vmctl {\r\n}\r\n"))
	if err := os.Chmod(target, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "main.vmctl.hcl")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := spec.Init(dir, "demo", newID); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(target)
	if want := "vmctl {\r\n  project = \"demo\"\r\n  id      = \"k7m2qd9x4r\"\r\n}\r\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info, err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file became %v, %v", info, err)
	}
}

func TestInitRefuses(t *testing.T) {
	for _, c := range []struct{ name, project, id, src, want string }{
		{"project", "My Project", newID, "", `"My Project" is not a project name`},
		{"hyphen first", "-a", newID, "", `"-a" is not a project name`},
		{"long project", strings.Repeat("a", 32), newID, "", `is not a project name`},
		{"id", "demo", "K7M2QD9X4R", "", `"K7M2QD9X4R" is not a project id`},
		{"syntax", "demo", newID, "vmctl {", "Unclosed configuration block"},
		{"empty id", "demo", newID, "vmctl {\n  id = \"\"\n}", `:2: "" is not a project id: ` + "`vmctl init` writes one"},
		{"other id", "demo", newID, "vmctl {\n  id = null\n}", `:2: "" is not a project id`},
		{"computed id", "demo", newID, "vmctl {\n  id = var.x\n}", `:2: id is not a literal string: remove the line, or write one`},
		{"list", "demo", newID, "vmctl {\n  project = []\n}", `:2: string required`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/main.vmctl.hcl", []byte(c.src))
			_, _, err := spec.Init(dir, c.project, c.id)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
			if got := pack(t, dir); got != "-- main.vmctl.hcl --\n"+c.src && got != "-- main.vmctl.hcl --\n"+c.src+"\n" {
				t.Errorf("the folder became\n%s", got)
			}
		})
	}
	if _, _, err := spec.Init(filepath.Join(t.TempDir(), "none"), "demo", newID); err == nil ||
		!strings.Contains(err.Error(), "write project and id: read the folder of the spec: open ") {
		t.Errorf("a missing folder: %v", err)
	}
}

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
