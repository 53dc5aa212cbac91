package spec_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/txtar"

	"vmctl/spec"
)

// TestBroken loads every archive of testdata/broken and compares the diagnostics with the file
// `want` of the archive. The archive's comment holds inputs, a line each.
//
// row A30, of unknown attributes: they are errors
// row A35: sizes
// row L49: two resources of one name
// row L50: a kernel that is missing, empty or no file
func TestBroken(t *testing.T) {
	archives, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(archives) < 80 {
		t.Fatalf("found %d archives: %v", len(archives), err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			golden, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			a, err := txtar.ParseFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(unpack(t, a))
			c, diags := spec.Load(".", inputs(a))
			got := render(t, c, diags)
			if !diags.HasErrors() {
				t.Errorf("no mistake was found")
			}
			compare(t, golden, a, got)
		})
	}
}

// unpack writes the files of an archive, but for `want`, into a new folder.
func unpack(t testing.TB, a *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range a.Files {
		if f.Name != "want" {
			write(t, filepath.Join(dir, f.Name), f.Data)
		}
	}
	return dir
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// inputs reads the comment of an archive: --var, --var-file, variables of the
// environment, `version V`, `built_in TYPE`, and `unsupported PATH` or `unsupported KIND:`.
func inputs(a *txtar.Archive) spec.Inputs {
	in := spec.Inputs{ProviderTypes: []string{"libvirt", "lima", "sim", "terraform"}, Version: "0.1.0"}
	unsupported := map[string]bool{}
	for line := range strings.SplitSeq(string(a.Comment), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case word == "--var":
			in.Vars = append(in.Vars, rest)
		case word == "--var-file":
			in.VarFiles = append(in.VarFiles, rest)
		case word == "version":
			in.Version = rest
		case word == "built_in":
			in.BuiltIn = rest
		case word == "unsupported":
			unsupported[rest] = true
		case strings.Contains(word, "="):
			in.Environ = append(in.Environ, line)
		}
	}
	in.Supports = func(_ string, kind spec.Kind, path string) bool {
		return !unsupported[path] && (path != "" || !unsupported[string(kind)+":"])
	}
	return in
}

func render(t testing.TB, c *spec.Config, diags hcl.Diagnostics) string {
	t.Helper()
	var b bytes.Buffer
	if err := hcl.NewDiagnosticTextWriter(&b, c.Files(), 78, false).WriteDiagnostics(diags); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// compare compares got with the file `want` of an archive. UPDATE=1 rewrites it.
func compare(t testing.TB, golden string, a *txtar.Archive, got string) {
	t.Helper()
	var want string
	last := len(a.Files) - 1
	if last >= 0 && a.Files[last].Name == "want" {
		want = string(a.Files[last].Data)
	} else {
		a.Files = append(a.Files, txtar.File{Name: "want"})
		last++
	}
	if got == want {
		return
	}
	if os.Getenv("UPDATE") == "1" {
		a.Files[last].Data = []byte(got)
		if err := os.WriteFile(golden, txtar.Format(a), 0o644); err != nil { //nolint:gosec // a golden is no secret
			t.Fatal(err)
		}
		return
	}
	t.Errorf("diagnostics (-want +got):\n%s", cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
}

// golden compares got with a file. UPDATE=1 rewrites it.
func golden(t testing.TB, path, got string) {
	t.Helper()
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // a golden is no secret
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s (-want +got):\n%s", path, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")))
	}
}

// Empty blocks that only say how vmctl treats an object need no support of a provider.
func TestEmptyPolicyBlocks(t *testing.T) {
	dir := t.TempDir()
	text := "vm \"a\" {\n  boot {\n    kernel = \"k\"\n  }\n  start {}\n  stop {}\n  orphan {}\n  rollout {}\n  timeouts {}\n  lifecycle {}\n}\n" +
		"disk \"d\" {\n  size = \"8MiB\"\n  timeouts {}\n  lifecycle {}\n}\n"
	for name, content := range map[string]string{"main.vmctl.hcl": text, "k": "k"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policies := []string{"start", "stop", "orphan", "rollout", "timeouts", "lifecycle"}
	_, diags := spec.Load(dir, spec.Inputs{
		ProviderTypes: []string{"libvirt"}, Version: "0.1.0",
		Supports: func(_ string, _ spec.Kind, path string) bool { return !slices.Contains(policies, path) },
	})
	if diags.HasErrors() {
		t.Error(diags)
	}
}
