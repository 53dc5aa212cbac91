package spec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/spec"
)

// An image that cannot be read is no mistake of the spec: a machine that exists does not need it
// any more.
func TestImageThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	here := filepath.Join(dir, "here.qcow2")
	write(t, here, []byte("an image"))
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"here.qcow2":                  "",
		here:                          "",
		"https://example.org/x.qcow2": "",
		"gone.qcow2":                  "no such file or directory. Relative paths are read from the folder of the spec.",
		"/gone/x.qcow2":               "no such file or directory. Correct the path, or put the file there.",
		"~/x.qcow2":                   "no such file or directory. `~` is not expanded: write the full path.",
		"folder":                      "it is a folder. Name a regular file that is not empty.",
		os.DevNull:                    "it is not a regular file. Name a regular file that is not empty.",
	} {
		write(t, filepath.Join(dir, "main.vmctl.hcl"), fmt.Appendf(nil, "vm \"a\" {\n  image = %q\n}\n", source))
		c, diags := spec.Load(dir, spec.Inputs{})
		if diags.HasErrors() {
			t.Fatalf("%s: %v", source, diags)
		}
		r, _ := c.Resource(spec.Address{Kind: spec.VM, Name: "a"})
		resolved, diags := c.Resolve(r.Address, nil)
		if diags.HasErrors() || len(resolved.Missing) != len(r.Missing) {
			t.Errorf("%s resolves to %+v, %v", source, resolved.Missing, diags)
		}
		switch {
		case want == "" && len(r.Missing) == 0:
		case want == "" || len(r.Missing) != 1:
			t.Errorf("%s: missing %+v", source, r.Missing)
		default:
			begins := fmt.Sprintf("`image.source` of `vm.a` is %q, which cannot be used: ", source)
			if got := r.Missing[0].Detail; got != begins+want || !strings.HasPrefix(r.Missing[0].Path, "image") {
				t.Errorf("missing at %s: %s\nwant %s%s", r.Missing[0].Path, got, begins, want)
			}
		}
	}
}

// A private key that is on another machine is no mistake, either.
func TestKeyThatIsElsewhere(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "k"), []byte("kernel"))
	write(t, filepath.Join(dir, "main.vmctl.hcl"), []byte("vm \"a\" {\n  boot { kernel = \"k\" }\n  ssh { identity = \"key\" }\n}\n"))
	c, diags := spec.Load(dir, spec.Inputs{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	r, _ := c.Resource(spec.Address{Kind: spec.VM, Name: "a"})
	if len(r.Missing) != 1 || r.Missing[0].Path != "ssh.identity" || r.Want.GetAttr("ssh").GetAttr("identity").AsString() != "key" {
		t.Errorf("missing %+v of %#v", r.Missing, r.Want)
	}
}

// A command that only ends existing objects needs none of the files that they were made of. Any
// other mistake counts for it, too.
//
// row L51
func TestFilesThatAreGone(t *testing.T) {
	dir := t.TempDir()
	const block = "vm \"a\" {\n  boot {\n    kernel = \"vmlinuz\"\n  }\n  cloud_init {\n    user_data = %s\n  }\n}\n"
	for text, want := range map[string]string{
		`templatefile("gone", {})`: "",
		`file("gone")`:             "",
		`filesha256("gone")`:       "",
		`file("../gone")`:          "is outside of the folder of the spec",
	} {
		write(t, filepath.Join(dir, "main.vmctl.hcl"), fmt.Appendf(nil, block, text))
		if _, diags := spec.Load(dir, spec.Inputs{}); !diags.HasErrors() {
			t.Errorf("%s: nothing is wrong for who makes it", text)
		}
		c, diags := spec.Load(dir, spec.Inputs{AllowMissingFiles: true})
		if want != "" {
			if !strings.Contains(diags.Error(), want) {
				t.Errorf("%s: %v, want %q", text, diags, want)
			}
			continue
		}
		if diags.HasErrors() {
			t.Errorf("%s: %v", text, diags)
			continue
		}
		r, _ := c.Resource(spec.Address{Kind: spec.VM, Name: "a"})
		if v := r.Want.GetAttr("cloud_init").GetAttr("user_data"); v.IsKnown() {
			t.Errorf("%s is %#v, and nobody can know", text, v)
		}
		if v := r.Want.GetAttr("boot").GetAttr("kernel_sha256"); v.IsKnown() {
			t.Errorf("the kernel's digest is %#v, and nobody can know", v)
		}
	}
}
