//go:build cgo && libvirt_dlopen && linux

package bench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	virt "libvirt.org/go/libvirt"

	"vmctl/providers"
	"vmctl/providers/libvirt"
)

// domains is the number of domains that are observed, each with a disk.
const domains = 500

// pairs is the number of alternating runs of which the medians count.
const pairs = 5

// execs is the number of alternating commands in a guest: each takes a fraction of a second.
const execs = 25

// BenchmarkLibvirt runs vmctl and bare calls of libvirt (or a script with virsh and ssh, for an apply)
// by turns, and prints the medians. It needs
// what `make test` needs.
//
//	go test -tags libvirt_dlopen ./acceptance/bench -run '^$' -bench Libvirt -benchtime 1x -v
func BenchmarkLibvirt(b *testing.B) {
	h := newHome(b)
	b.Run("observe", func(b *testing.B) {
		many := h.many(b)
		for i, w := range []*world{many.onTestDriver(b), many} {
			name := fmt.Sprintf("observe %d (%s)", domains, []string{"test driver", "daemon"}[i])
			vmctl, bare := byTurns(b, pairs, w.observe, w.bare)
			report(b, name+", wall", "1.30", wallOf, vmctl, bare)
			report(b, name+", CPU", "1.30", cpuOf, vmctl, bare)
		}
		many.remove(b)
	})
	h.write(b, "one", oneSpec)
	h.run(b, "one", "vmctl", "apply", "--auto-approve")
	s := h.script(b)
	b.Run("plan", func(b *testing.B) {
		vmctl, bare := byTurns(b, pairs, h.timed("vmctl", "plan"), h.timed("virsh", "list", "--all"))
		report(b, "plan of one VM without changes, wall", "0.150s", wallOf, vmctl, bare)
	})
	b.Run("exec", func(b *testing.B) {
		config := filepath.Join(h.dir, "one", "ssh")
		check(b, os.WriteFile(config, []byte(h.run(b, "one", "vmctl", "vm", "ssh-config", "dev")), 0o600))
		h.own(b)
		vmctl, bare := byTurns(b, execs, h.timed("vmctl", "vm", "exec", "dev", "--", "true"), h.timed("ssh", "-F", config, "vm.dev", "true"))
		report(b, "command in a guest, wall", "0.060s more", wallOf, vmctl, bare)
	})
	b.Run("apply", func(b *testing.B) {
		vmctl, bare := byTurns(b, pairs, s.apply, s.make)
		report(b, "apply until ready, wall", "1.05", wallOf, vmctl, bare)
	})
	b.Run("start", func(b *testing.B) {
		h.run(b, "one", "vmctl", "vm", "stop", "dev")
		h.write(b, "one", strings.Replace(oneSpec, "ssh {", "ssh {\n    wait = false", 1))
		vmctl, bare := byTurns(b, pairs, s.start("vmctl", "vm", "start", "dev"), s.start("virsh", "start", "one.dev"))
		report(b, "start, wall", "1.50", wallOf, vmctl, bare)
	})
}

const oneSpec = `vmctl {
  project = "one"
  id      = "k7m2qd9x4r"
}

vm "dev" {
  cpus   = 1
  memory = "256MiB"
  accel  = "tcg"

  boot {
    kernel  = "../guest/vmlinuz"
    initrd  = "../guest/initrd.gz"
    cmdline = "console=ttyS0 quiet no_timer_check"
  }

  ssh {
    user = "root"
  }
}
`

// manySpec has the VM and the disk of which all others are copies.
const manySpec = `vmctl {
  project = "many"
  id      = "m7m2qd9x4r"
}

disk "dx0000" {
  size = "1MiB"
}

vm "vx0000" {
  running = false
  memory  = "256MiB"
  accel   = "tcg"

  boot {
    kernel = "main.vmctl.hcl"
  }

  additional_disk {
    disk = disk.dx0000
  }
}
`

// used is the price of one run.
type used struct{ wall, cpu time.Duration }

func wallOf(u used) time.Duration { return u.wall }
func cpuOf(u used) time.Duration  { return u.cpu }

// spent measures a function of this process.
func spent(b *testing.B, f func()) used {
	b.Helper()
	runtime.GC()
	cpu := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	began, before := time.Now(), cpu()
	f()
	return used{wall: time.Since(began), cpu: cpu() - before}
}

// byTurns runs two functions by turns, each so many times.
func byTurns(b *testing.B, times int, vmctl, bare func(*testing.B) used) (all, others []used) {
	b.Helper()
	for range times {
		all, others = append(all, vmctl(b)), append(others, bare(b))
	}
	return all, others
}

// report prints the medians, their ratio and the goal for that.
func report(b *testing.B, name, goal string, of func(used) time.Duration, vmctl, bare []used) {
	b.Helper()
	middle := func(all []used) float64 {
		var each []time.Duration
		for _, u := range all {
			each = append(each, of(u))
		}
		slices.Sort(each)
		return each[len(each)/2].Seconds()
	}
	m, o := middle(vmctl), middle(bare)
	b.Logf("%-40s vmctl %.3fs, without it %.3fs, ratio %.2f (goal %s)", name, m, o, m/o, goal)
}

// world is a connection with domains.
type world struct {
	home     *home
	uri      string
	settings providers.Settings
	provider providers.Provider
	known    []providers.Known
}

// observe observes the world, over one connection from the second time on.
func (w *world) observe(b *testing.B) used {
	b.Helper()
	if w.provider == nil {
		var err error
		w.provider, err = libvirt.Type(libvirt.Host{UID: os.Getuid(), Getenv: os.Getenv}).Open(b.Context(), w.settings)
		check(b, err)
	}
	return spent(b, func() {
		inv, err := w.provider.Observe(b.Context(), providers.Query{Known: w.known})
		check(b, err)
		if w.known != nil && len(inv.Objects) != len(w.known) || len(inv.Unknown)+len(inv.Partial) > 0 {
			b.Fatalf("%d of %d objects; unknown: %v; partial: %v", len(inv.Objects), len(w.known), inv.Unknown, inv.Partial)
		}
		if w.known != nil {
			return
		}
		for _, o := range inv.Objects {
			w.known = append(w.known, providers.Known{Address: o.Owner.Address, Kind: o.Kind, ID: o.ID, Name: o.Name, Want: cty.EmptyObjectVal})
		}
	})
}

// bare asks libvirt for the same, one call after the other: each domain's run state and
// configuration, the pools, and each volume but the marks.
func (w *world) bare(b *testing.B) used {
	b.Helper()
	c, err := virt.NewConnect(w.uri)
	check(b, err)
	defer c.Close() //nolint:errcheck // it ends with the process
	return spent(b, func() {
		all, err := c.ListAllDomains(0)
		check(b, err)
		for _, d := range all {
			_, _, err := d.GetState()
			check(b, err)
			_, err = d.GetXMLDesc(virt.DOMAIN_XML_INACTIVE)
			check(b, err)
			check(b, d.Free())
		}
		pools, err := c.ListAllStoragePools(virt.CONNECT_LIST_STORAGE_POOLS_ACTIVE)
		check(b, err)
		for _, p := range pools {
			_, err := p.GetXMLDesc(0)
			check(b, err)
			check(b, p.Refresh(0))
			volumes, err := p.ListAllStorageVolumes(0)
			check(b, err)
			for _, v := range volumes {
				name, err := v.GetName()
				check(b, err)
				if !strings.HasSuffix(name, ".vmctl") {
					_, err = v.GetXMLDesc(0)
					check(b, err)
				}
				check(b, v.Free())
			}
			check(b, p.Free())
		}
		if len(all) < domains {
			b.Fatalf("%d domains", len(all))
		}
	})
}

// many makes the domains: vmctl makes one with its disk, and the others are copies of it with
// IDs and names of their own.
func (h *home) many(b *testing.B) *world {
	b.Helper()
	h.write(b, "many", manySpec)
	h.run(b, "many", "vmctl", "apply", "--auto-approve")
	data := filepath.Join(h.dir, "s/vmctl/many-m7m2qd9x4r")
	w := &world{home: h, uri: h.uri, settings: providers.Settings{
		Name: "default", Attrs: attrs(h.uri), Dir: filepath.Join(data, "libvirt-default"), Keys: filepath.Join(data, "keys"),
		Files: filepath.Join(h.dir, "many"), Project: providers.Project{Name: "many", ID: "m7m2qd9x4r"}, Now: time.Now,
	}}
	c, err := virt.NewConnect(h.uri)
	check(b, err)
	defer c.Close() //nolint:errcheck // it ends with the process
	domain, err := c.LookupDomainByName("many.vx0000")
	check(b, err)
	text, err := domain.GetXMLDesc(virt.DOMAIN_XML_INACTIVE)
	check(b, err)
	uuid, err := domain.GetUUIDString()
	check(b, err)
	pool := filepath.Join(w.settings.Dir, "pool")
	files, err := os.ReadDir(pool)
	check(b, err)
	mark, err := os.ReadFile(filepath.Join(pool, "many.dx0000.qcow2.vmctl"))
	check(b, err)
	_, rest, _ := strings.Cut(string(mark), `"of":"`)
	disk, _, _ := strings.Cut(rest, `"`)
	for i := 1; i < domains; i++ {
		next := strings.NewReplacer(
			uuid, fmt.Sprintf("%08x-0000-8000-8000-000000000001", i), disk, fmt.Sprintf("%08x-0000-8000-8000-000000000002", i),
			"vx0000", fmt.Sprintf("vx%04d", i), "dx0000", fmt.Sprintf("dx%04d", i),
		).Replace
		for _, f := range files {
			h.copy(b, filepath.Join(pool, f.Name()), filepath.Join(pool, next(f.Name())), next)
		}
		keys := filepath.Join(w.settings.Keys, uuid)
		check(b, os.CopyFS(next(keys), os.DirFS(keys)))
		made, err := c.DomainDefineXML(next(text))
		check(b, err)
		check(b, made.Free())
	}
	h.own(b)
	w.observe(b) // learns what there is
	return w
}

func attrs(uri string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal(uri), "pool": cty.NullVal(cty.String)})
}

// onTestDriver returns the same domains in libvirt's test driver, whose volumes have no files.
func (w *world) onTestDriver(b *testing.B) *world {
	b.Helper()
	c, err := virt.NewConnect(w.uri)
	check(b, err)
	defer c.Close() //nolint:errcheck // it ends with the process
	var text strings.Builder
	text.WriteString("<node>")
	all, err := c.ListAllDomains(0)
	check(b, err)
	for _, d := range all {
		x, err := d.GetXMLDesc(virt.DOMAIN_XML_INACTIVE)
		check(b, err)
		x = strings.Replace(x, "type='qemu'", "type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'", 1)
		text.WriteString(strings.Replace(x, "</domain>", "<test:runstate>5</test:runstate></domain>", 1)) // off
	}
	fmt.Fprintf(&text, "<pool type='dir'><name>vmctl-many-m7m2qd9x4r</name><target><path>%s/pool</path></target>", w.settings.Dir)
	files, err := os.ReadDir(filepath.Join(w.settings.Dir, "pool"))
	check(b, err)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".vmctl") {
			fmt.Fprintf(&text, "<volume><name>%[1]s</name><capacity>4096</capacity><target><path>%[2]s/pool/%[1]s</path></target></volume>", f.Name(), w.settings.Dir)
		}
	}
	text.WriteString("</pool></node>")
	file := filepath.Join(w.home.dir, "many.xml")
	check(b, os.WriteFile(file, []byte(text.String()), 0o600))
	on := &world{home: w.home, uri: "test://" + file, settings: w.settings}
	on.settings.Attrs = attrs(on.uri)
	on.observe(b)
	return on
}

// remove removes the domains.
func (w *world) remove(b *testing.B) {
	b.Helper()
	c, err := virt.NewConnect(w.uri)
	check(b, err)
	defer c.Close() //nolint:errcheck // it ends with the process
	all, err := c.ListAllDomains(0)
	check(b, err)
	for _, d := range all {
		check(b, d.Undefine())
	}
}
