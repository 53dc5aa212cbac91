package libvirt_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/providers/providertest"
	"vmctl/spec"
)

// show writes an inventory as short text.
func show(inv providers.Inventory) string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(inv.Partial)) {
		fmt.Fprintf(&b, "partial %s: %s\n", kind, inv.Partial[kind])
	}
	for _, u := range inv.Unknown {
		fmt.Fprintf(&b, "unknown %s: %s\n", u.Name, u.Reason)
	}
	for _, o := range inv.Objects {
		running := "nil"
		if o.Running != nil {
			running = fmt.Sprint(*o.Running)
		}
		fmt.Fprintf(&b, "%s %s running=%s", o.Name, o.State, running)
		if o.Owner != nil {
			fmt.Fprintf(&b, " owner=%s/%s/%d", o.Owner.ID, o.Owner.Address, o.Owner.Generation)
		}
		b.WriteString("\n")
		for _, path := range slices.Sorted(maps.Keys(o.Unreadable)) {
			fmt.Fprintf(&b, "  unreadable %s: %s\n", path, o.Unreadable[path])
		}
		for _, f := range o.Findings {
			fmt.Fprintf(&b, "  %s: %s", f.Kind, strings.Join(f.Evidence, " | "))
			if f.Action != "" {
				fmt.Fprintf(&b, " -> %s", f.Action)
			}
			for _, next := range providertest.Lines(f.Next) {
				fmt.Fprintf(&b, " -> %s", next)
			}
			b.WriteString("\n")
		}
		for _, c := range o.Holds {
			fmt.Fprintf(&b, "  holds %s\n", c)
		}
	}
	return b.String()
}

func TestObserve(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(l *lab)
		want    string
	}{
		{
			name: "running", prepare: func(*lab) {},
			want: "lab.dev running running=true owner=k7m2qd9x4r/vm.dev/1\n  holds name qemu:///session lab.dev\n",
		},
		{
			name: "off", prepare: func(l *lab) { l.Put(devID, func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakeOff, "" }) },
			want: "lab.dev off running=false owner=k7m2qd9x4r/vm.dev/1\n  holds name qemu:///session lab.dev\n",
		},
		{
			name: "paused by the user", prepare: func(l *lab) { l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakePaused }) },
			want: "lab.dev paused running=false owner=k7m2qd9x4r/vm.dev/1\n  holds name qemu:///session lab.dev\n",
		},
		{
			name: "paused by an error", prepare: func(l *lab) {
				l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeBroken })
				l.file("cache/libvirt/qemu/log/lab.dev.log", "-msg timestamp=on \\\nx\nKVM internal error. Suberror: 1\n")
			},
			want: `lab.dev paused running=false owner=k7m2qd9x4r/vm.dev/1
  broken: it is paused (I/O error) | QEMU says: VM status: paused (I/O error) | last lines of QEMU's log DIR/cache/libvirt/qemu/log/lab.dev.log: |   KVM internal error. Suberror: 1
  holds name qemu:///session lab.dev
`,
		},
		{
			name: "crashed", prepare: func(l *lab) {
				l.Put(devID, func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakeCrashed, "" })
			},
			want: `lab.dev off running=false owner=k7m2qd9x4r/vm.dev/1
  crashed: it is shut off (crashed)
  holds name qemu:///session lab.dev
`,
		},
		{
			name: "in between", prepare: func(l *lab) { l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeSaving }) },
			want: `lab.dev paused running=nil owner=k7m2qd9x4r/vm.dev/1
  unreadable running: libvirt is busy with it: paused (saving)
  holds name qemu:///session lab.dev
`,
		},
		{
			name: "undefined while it runs", prepare: func(l *lab) { l.Put(devID, func(d *libvirt.FakeDomain) { d.Transient = true }) },
			want: `lab.dev running running=true owner=k7m2qd9x4r/vm.dev/1
  partial: it was undefined while it ran: without a definition it is gone when it stops -> defined again
  holds name qemu:///session lab.dev
`,
		},
		{
			name: "without its kernel", prepare: func(l *lab) {
				l.Put(devID, func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakeOff, "" })
				l.DropVolume(poolName, devID+".kernel-6923dd1bc046")
			},
			want: `lab.dev off running=false owner=k7m2qd9x4r/vm.dev/1
  partial: it boots from DIR/data/libvirt/pool/DEV.kernel-6923dd1bc046, which is gone -> uploaded again
  holds name qemu:///session lab.dev
`,
		},
		{
			name: "on its way down", prepare: func(l *lab) { l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeEnding }) },
			want: "lab.dev ending running=false owner=k7m2qd9x4r/vm.dev/1\n  holds name qemu:///session lab.dev\n",
		},
		{
			name: "suspended by its guest", prepare: func(l *lab) { l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeAsleep }) },
			want: `lab.dev paused running=false owner=k7m2qd9x4r/vm.dev/1
  drift: its guest suspended it: it holds its memory and does not answer -> woken when it is started, and before it is asked to shut down
  holds name qemu:///session lab.dev
`,
		},
		{
			name: "with saved memory", prepare: func(l *lab) {
				l.Put(devID, func(d *libvirt.FakeDomain) { d.Power, d.Running, d.Saved = libvirt.FakeOff, "", true })
			},
			want: `lab.dev off running=false owner=k7m2qd9x4r/vm.dev/1
  dirty: its memory was saved when it was shut off: the next start goes on from there -> kept until it is started or deleted
  holds name qemu:///session lab.dev
`,
		},
		{
			name: "a copy", prepare: func(l *lab) {
				copied := strings.NewReplacer("<uuid>"+devID, "<uuid>"+otherID, "lab.dev", "lab.dev-clone").Replace(l.Configured(devID))
				l.Put(otherID, func(d *libvirt.FakeDomain) { d.Name, d.Configured = "lab.dev-clone", copied })
			},
			want: `lab.dev running running=true owner=k7m2qd9x4r/vm.dev/1
  holds name qemu:///session lab.dev
lab.dev-clone off running=false owner=k7m2qd9x4r/vm.dev/1
  copy: its mark was written for 11111111-2222-8333-8444-555555555555 -> left alone
  holds name qemu:///session lab.dev-clone
`,
		},
		{
			name: "a stranger of our name", prepare: func(l *lab) {
				l.Drop(devID)
				l.Put(otherID, func(d *libvirt.FakeDomain) {
					d.Name, d.Configured = "lab.dev", "<domain type='kvm'><name>lab.dev</name><vcpu>2</vcpu><memory unit='KiB'>1048576</memory></domain>"
				})
			},
			want: "lab.dev off running=false\n  holds name qemu:///session lab.dev\n",
		},
		{
			// row A57
			name: "strangers of other names", prepare: func(l *lab) {
				l.Drop(devID)
				for i, name := range []string{"labxdev", "lab.dev2", "dev"} {
					l.Put(fmt.Sprint(i), func(d *libvirt.FakeDomain) { d.Name, d.Configured = name, "<domain type='qemu'/>" })
				}
			},
		},
		{
			name: "a stranger that holds a port", prepare: func(l *lab) {
				l.Drop(devID)
				l.Put(otherID, func(d *libvirt.FakeDomain) {
					d.Name = "web"
					d.Configured = `<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><name>web</name><vcpu>1</vcpu>` +
						`<qemu:commandline><qemu:arg value='-netdev'/><qemu:arg value='user,id=n,hostfwd=::8080-:80'/></qemu:commandline></domain>`
				})
			},
			want: "web off running=false\n  holds name qemu:///session web\n  holds host port 0.0.0.0:8080/tcp\n",
		},
		{
			name: "one that cannot be read", prepare: func(l *lab) { l.Unreadable["lab.dev"] = errors.New("it is locked") },
			want: "unknown lab.dev: it is locked\n",
		},
		{
			name: "one with text where a number belongs", prepare: func(l *lab) {
				l.Copy(devID, otherID, "lab.dev-clone")
				l.Put(otherID, func(d *libvirt.FakeDomain) {
					d.Configured = strings.Replace(d.Configured, "<vcpu>1<", "<vcpu>two<", 1)
				})
			},
			want: `unknown lab.dev-clone: read the domain's description: strconv.ParseUint: parsing "two": invalid syntax
lab.dev running running=true owner=k7m2qd9x4r/vm.dev/1
  holds name qemu:///session lab.dev
`,
		},
		{
			name: "its monitor does not answer", prepare: func(l *lab) { l.Refuses["monitor"] = errors.New("busy") },
			want: `lab.dev running running=true owner=k7m2qd9x4r/vm.dev/1
  unreadable ports: ask QEMU for its forwarded ports: busy
  unreadable ssh_port: ask QEMU for its forwarded ports: busy
  holds name qemu:///session lab.dev
`,
		},
		{
			name: "no list", prepare: func(l *lab) { l.Refuses["list"] = errors.New("broken pipe") },
			want: "partial disk: list the domains of qemu:///session: broken pipe\n" +
				"partial vm: list the domains of qemu:///session: broken pipe\n",
		},
		{
			name: "no daemon", prepare: func(l *lab) {
				l.Down = libvirt.ErrLibvirt("Failed to connect socket to '/x': No such file or directory")
			},
			want: "partial disk: " + noDaemon + "partial vm: " + noDaemon,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := made(t, vm(nil))
			tc.prepare(l)
			wantText(t, "inventory", tc.want, l.plain(show(l.observe(vm(nil)))))
			if len(l.Calls) > 0 {
				t.Errorf("looking changed something: %v", l.Calls)
			}
		})
	}
}

const noDaemon = "connect to qemu:///session: no libvirt daemon answers, and none could be started for this user " +
	"(Failed to connect socket to '/x': No such file or directory)\n"

// A change made behind vmctl's back is seen, whichever side it was made on.
func TestObserveShowsWhatIsConfiguredAndWhatRuns(t *testing.T) {
	edit := func(from, to string) func(*libvirt.FakeDomain) {
		return func(d *libvirt.FakeDomain) { d.Configured = strings.Replace(d.Configured, from, to, 1) }
	}
	memory := func(bytes int64) cty.Value { return cty.NumberIntVal(bytes) }
	for _, tc := range []struct {
		name, attr string
		want       map[string]cty.Value
		change     func(*libvirt.FakeDomain)
		shows      cty.Value
		runs       bool // shows describes the running domain
	}{
		{name: "as wanted", attr: "memory", change: func(*libvirt.FakeDomain) {}, shows: memory(256 << 20)},
		{name: "the configuration", attr: "memory", change: edit(">262144<", ">524288<"), shows: memory(512 << 20)},
		{
			name: "what runs with an earlier configuration", attr: "memory", runs: true,
			change: func(d *libvirt.FakeDomain) {
				edit(">262144<", ">524288<")(d)
				edit(`memory="268435456"`, `memory="536870912"`)(d)
			},
			shows: memory(256 << 20),
		},
		{name: "less memory than there could be", attr: "memory", change: edit("</memory>", "</memory><currentMemory unit='KiB'>131072</currentMemory>"), shows: memory(128 << 20)},
		{name: "processors", attr: "cpus", change: edit("<vcpu>1<", "<vcpu current='1'>2<"), shows: cty.NumberIntVal(2)},
		{
			name: "fewer processors than there could be", attr: "cpus",
			change: func(d *libvirt.FakeDomain) {
				edit("<vcpu>1<", "<vcpu current='2'>4<")(d)
				edit(`cpus="1"`, `cpus="4"`)(d)
			},
			want: map[string]cty.Value{"cpus": cty.NumberIntVal(4)}, shows: cty.NumberIntVal(2),
		},
		{name: "the accelerator", attr: "accel", change: edit(`type="qemu"`, `type="kvm"`), shows: cty.StringVal("kvm")},
		{name: "a port", attr: "port_forward", change: edit("hostfwd=tcp:127.0.0.1:40002-:8080", "hostfwd=tcp:127.0.0.1:40002-:8081"), shows: func() cty.Value {
			f := forwards("40002").AsValueSlice()[0].AsValueMap()
			f["guest"] = cty.NumberIntVal(8081)
			return cty.ListVal([]cty.Value{cty.ObjectVal(f)})
		}()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := made(t, vm(nil))
			l.Put(devID, tc.change)
			o := l.object(vm(tc.want))
			got := o.Attrs.GetAttr(tc.attr)
			if tc.runs {
				got = o.Live.GetAttr(tc.attr)
			}
			if !got.RawEquals(tc.shows) {
				t.Errorf("%s = %#v, want %#v", tc.attr, got, tc.shows)
			}
		})
	}
}

func TestObserveSeesAnotherKernel(t *testing.T) {
	l := made(t, vm(nil))
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured = strings.Replace(d.Configured, "<kernel>", "<kernel>/boot/theirs</kernel><!--", 1)
		d.Configured = strings.Replace(d.Configured, "</kernel>\n", "-->\n", 1)
	})
	got := l.object(vm(nil)).Attrs.GetAttr("boot").GetAttr("kernel_sha256").AsString()
	if got != "not vmctl's: theirs" {
		t.Errorf("kernel_sha256 = %q", got)
	}
}

func TestObserveFindsItsOwnByMark(t *testing.T) {
	l := made(t, vm(nil))
	inv, err := l.provider.Observe(t.Context(), providers.Query{})
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, "inventory", "lab.dev running running=true owner=k7m2qd9x4r/vm.dev/1\n  holds name qemu:///session lab.dev\n", show(inv))
	l.settings.Project.ID = "another"
	l.open()
	inv, err = l.provider.Observe(t.Context(), providers.Query{Known: []providers.Known{{Address: dev, Kind: spec.VM, Name: "x.dev"}}})
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, "inventory of another project", "", show(inv))
}

// row E22
func TestObserveIsSteady(t *testing.T) {
	l := made(t, vm(nil))
	copied := strings.NewReplacer("<uuid>"+devID, "<uuid>"+otherID, "lab.dev", "lab.a").Replace(l.Configured(devID))
	l.Put(otherID, func(d *libvirt.FakeDomain) { d.Name, d.Configured = "lab.a", copied })
	first := fmt.Sprintf("%#v", l.observe(vm(nil)).Objects[1].Attrs) + show(l.observe(vm(nil)))
	for range 100 {
		inv := l.observe(vm(nil))
		if got := fmt.Sprintf("%#v", inv.Objects[1].Attrs) + show(inv); got != first {
			t.Fatalf("got\n%s\nafter\n%s", got, first)
		}
	}
}

// A panic about one domain makes that domain unknown, and no other.
func TestAPanicIsOneUnknownDomain(t *testing.T) {
	l := withDisk(t)
	l.apply(useCache(create(dev2(nil))))
	l.Panics = "lab.dev"
	inv := l.see()
	if len(inv.Unknown) != 1 || inv.Unknown[0].ID != devID || !strings.Contains(inv.Unknown[0].Reason, "the provider panicked at libvirt/fake_test.go:") {
		t.Errorf("unknown: %+v", inv.Unknown)
	}
	if len(inv.Partial) > 0 || l.diskIn(inv) == nil {
		t.Errorf("partial: %v, disk %+v", inv.Partial, l.diskIn(inv))
	}
}

// row E51, of libvirt's host
func TestTheHostTellsItsProcessorsAndMemory(t *testing.T) {
	l := newLab(t)
	if inv := l.observe(cty.NilVal); inv.Capacity != (providers.Capacity{}) {
		t.Errorf("a host that tells nothing has %+v", inv.Capacity)
	}
	l.Node = providers.Capacity{CPUs: 8, Memory: 64 << 30}
	if inv := l.observe(cty.NilVal); inv.Capacity != l.Node {
		t.Errorf("the host has %+v, want %+v", inv.Capacity, l.Node)
	}
}
