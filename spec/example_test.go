package spec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"vmctl/spec"
)

// The only mistakes in the example of the whole language are parts that are not built in yet.
func TestExampleOfTheLanguage(t *testing.T) {
	src, err := os.ReadFile("testdata/example/example.vmctl.hcl")
	if err != nil {
		t.Fatal(err)
	}
	want, err := filepath.Abs("testdata/example/diagnostics")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "example.vmctl.hcl"), src)
	write(t, filepath.Join(dir, "guest/vmlinuz"), []byte("a kernel"))
	write(t, filepath.Join(dir, "guest/initrd.gz"), []byte("an initrd"))
	write(t, filepath.Join(dir, "certs/ca.pem"), []byte("a certificate"))
	write(t, filepath.Join(dir, "prompts/review.md"), []byte("Review it."))
	write(t, filepath.Join(dir, "cloud-init.yaml"), []byte("#cloud-config"))
	write(t, filepath.Join(dir, "templates/dev.yaml"), []byte("# a VM for development\nparam:\n  CONTAINER_ENGINE: containerd\nimages: [{location: debian.qcow2}]\n"))
	t.Chdir(dir)
	c, diags := spec.Load(".", spec.Inputs{ProviderTypes: []string{"libvirt", "lima", "sim", "terraform"}, Version: "0.1.0"})
	var got []string
	for _, d := range diags {
		inNoEngine := strings.Contains(d.Detail, "`engine` of `network.agents`") // networks of VMs are not built in yet
		if d.Summary != "Not built in yet" && !inNoEngine {
			t.Errorf("unexpected:\n%s", render(t, c, hcl.Diagnostics{d}))
		}
		got = append(got, d.Subject.String()+" "+d.Detail)
	}
	golden(t, want, strings.Join(got, "\n")+"\n")
}

// row X17
// row E22
func TestSameInputsSameConfig(t *testing.T) {
	var b strings.Builder
	b.WriteString(chain)
	for _, name := range strings.Fields("q w e r z u i o p") {
		b.WriteString("vm \"" + name + "\" {\n  for_each = { k = vm.a.cpus, l = local." + name + ", m = 1 }\n  cpus = each.value\n}\n")
		b.WriteString("locals {\n  " + name + " = 2\n}\n")
	}
	src := b.String()
	first := dump(t, good(t, src))
	for range 50 {
		if again := dump(t, good(t, src)); again != first {
			t.Fatalf("loaded again it is\n%s\nand was\n%s", again, first)
		}
	}
	broken := strings.NewReplacer("cpus = each.value", "cpus = each.valu + nothing(1) + wrong", "= 2", "= local.x").Replace(src)
	_, said := load(t, broken)
	for range 50 {
		_, again := load(t, broken)
		if len(again) != len(said) {
			t.Fatalf("%d diagnostics, then %d", len(said), len(again))
		}
		for i := range said {
			if said[i].Detail != again[i].Detail {
				t.Fatalf("said %q, then %q", said[i].Detail, again[i].Detail)
			}
		}
	}
}
