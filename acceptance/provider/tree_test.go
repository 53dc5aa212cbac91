//go:build cgo && libvirt_dlopen && linux

package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/providers/providertest/box"
	"vmctl/search"
	"vmctl/spec"
)

// Two levels inside of a real VM, over SSH: made with it, changed, moved, released before it stops, read
// after it starts, and removed from the bottom. The tiny guest keeps nothing over a stop.
func TestTree(t *testing.T) {
	t.Parallel()
	guest := filepath.Join(os.Getenv(homeVar), "guest")
	vm := func(running bool) string {
		return fmt.Sprintf(`vm "a" {
  provider = provider.libvirt.here
  running  = %t
  cpus     = 1
  memory   = "256MiB"
  boot {
    kernel  = %q
    initrd  = %q
    cmdline = "console=ttyS0 quiet no_timer_check"
  }
  stop {
    grace = "1m"
  }
}
`, running, guest+"/vmlinuz", guest+"/initrd.gz")
	}
	inner := func(label, in, content string) string {
		return fmt.Sprintf("box %q {\n  in      = %s\n  label   = %q\n  content = %q\n}\n", label, in, label, content)
	}
	search.Named(t, search.Host{
		Type:   libvirt.Type(libvirt.Host{UID: os.Getuid(), Getenv: os.Getenv}),
		Inside: map[spec.Kind]providers.Type{box.Kind: box.Type(nil)},
		Block:  func([]search.Fault) string { return "provider \"libvirt\" \"here\" {}\n" },
		Folders: func(dir string) providers.Settings {
			return providers.Settings{Dir: filepath.Join(dir, "libvirt"), Keys: filepath.Join(dir, "keys")}
		},
	},
		search.Step{Spec: vm(true) + inner("b", "vm.a", "one") + inner("c", "box.b", "it's \\ \"two\"\n$HOME")},
		search.Step{
			Spec: vm(true) + inner("b", "vm.a", "one") + inner("c", "box.b", "three"),
			Plan: []string{"write box.c"},
		},
		search.Step{
			Spec: vm(true) + inner("b", "vm.a", "one") + inner("c", "vm.a", "three"),
			Plan: []string{"close box.c", "remove box.c", "make box.c", "open box.c"},
		},
		search.Step{
			Spec: vm(false) + inner("b", "vm.a", "one") + inner("c", "vm.a", "three"),
			Plan: []string{"close box.b", "close box.c", "stop vm.a"},
		},
		search.Step{
			Spec: vm(true) + inner("b", "vm.a", "one") + inner("c", "vm.a", "three"),
			Plan: []string{"start vm.a", "wait_ssh vm.a"}, // what is inside is read after that
		},
		search.Step{Spec: "# nothing\n"},
	)
}
