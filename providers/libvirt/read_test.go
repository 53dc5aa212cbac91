package libvirt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/libvirt"
)

func TestParseUsernet(t *testing.T) {
	got := libvirt.ParseUsernet("Hub -1 (vmctl0):\r\n" +
		"  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n" +
		"  TCP[ESTABLISHED]   15       127.0.0.1 45469       10.0.2.15    22     0     0\r\n" +
		"  UDP[HOST_FORWARD]  12               *  5353       10.0.2.15    53     0     0\r\n" +
		"  TCP[HOST_FORWARD]  11       127.0.0.1 45469       10.0.2.15    22     0     0\r\n\r\n")
	wantText(t, "forwards", "[{53 5353 0.0.0.0 udp} {22 45469 127.0.0.1 tcp}]", fmt.Sprint(got))
	if got := libvirt.ParseUsernet("unknown command: 'info usernet'"); got != nil {
		t.Errorf("an error has forwards: %v", got)
	}
}

func TestParseNetdev(t *testing.T) {
	for arg, want := range map[string]string{
		"user,id=n,hostfwd=tcp:127.0.0.1:0-:22":               "[{22 0 127.0.0.1 tcp}]",
		"user,id=n,hostfwd=::8080-:80":                        "[{80 8080 0.0.0.0 tcp}]",
		"user,id=n,hostfwd=udp::53-10.0.2.15:5353":            "[{5353 53 0.0.0.0 udp}]",
		"user,id=n,hostfwd=tcp::1-:2,hostfwd=unix:/x-:3,a=b":  "[{2 1 0.0.0.0 tcp}]",
		"user,id=n,hostfwd=tcp::99999-:22,hostfwd=tcp::x-:22": "[]",
		"tap,id=n": "[]",
	} {
		if got := fmt.Sprint(libvirt.ParseNetdev(arg)); got != want {
			t.Errorf("%s: %s, want %s", arg, got, want)
		}
	}
}

func TestWithOwner(t *testing.T) {
	mark := `<vmctl:owner xmlns:vmctl="urn:vmctl:1" id="new"/>`
	for _, tc := range []struct{ name, before, after string }{
		{"none", "", mark},
		{"ours", "\n  <vmctl:owner xmlns:vmctl=\"urn:vmctl:1\" id=\"old\"><vmctl:boot/></vmctl:owner>\n", mark},
		{
			"ours among others",
			`<a:x xmlns:a="urn:a"><a:owner/></a:x><v:owner xmlns:v="urn:vmctl:1"/><b:y xmlns:b="urn:b">text</b:y>`,
			`<a:x xmlns:a="urn:a"><a:owner/></a:x><b:y xmlns:b="urn:b">text</b:y>` + mark,
		},
		{"ours inside of another's", `<a:x xmlns:a="urn:a"><v:owner xmlns:v="urn:vmctl:1"/></a:x>`, `<a:x xmlns:a="urn:a"><v:owner xmlns:v="urn:vmctl:1"/></a:x>` + mark},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := libvirt.WithOwner(tc.before, mark)
			if err != nil {
				t.Fatal(err)
			}
			wantText(t, "metadata", tc.after, got)
		})
	}
	if _, err := libvirt.WithOwner("<a><b></a>", mark); err == nil || !strings.HasPrefix(err.Error(), "read the domain's metadata: ") {
		t.Errorf("broken metadata: %v", err)
	}
}

// A damaged mark counts as a mark: nobody else may take an object that bears one.
func TestDamagedMark(t *testing.T) {
	l := made(t, vm(nil))
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured = strings.NewReplacer(`address="vm.dev"`, `address="???"`, `generation="1"`, `generation="x"`).Replace(d.Configured)
	})
	o := l.object(vm(nil))
	if o.Owner == nil || o.Owner.ID != lineage || o.Owner.Generation != 0 || o.Owner.Address.Name != "" {
		t.Errorf("mark %+v", o.Owner)
	}
}

func TestFingerprintLeavesOutWhatChangesByItself(t *testing.T) {
	l := made(t, vm(nil))
	before := l.object(vm(nil)).Fingerprint
	l.Put(devID, func(d *libvirt.FakeDomain) {
		for i := range d.Held {
			d.Held[i].Host += 7
		}
		d.Configured = strings.Replace(d.Configured, "127.0.0.1:40001-:22", "127.0.0.1:40099-:22", 1)
	})
	if after := l.object(vm(nil)).Fingerprint; after != before {
		t.Errorf("ports that the kernel chose count: %v", guard.Differences(before, after))
	}
	for _, change := range []struct{ from, to, says string }{
		{`generation="1"`, `generation="2"`, `planned on owner mark "vm.dev of k7m2qd9x4r, generation 1"`},
		{"<vcpu>1<", "<vcpu>2<", `planned on cpus "1"`},
		{">262144<", ">524288<", `planned on memory "268435456"`},
		{`type="qemu"`, `type="kvm"`, `planned on accel "tcg"`},
		{"quiet", "loud", `planned on kernel command line "2b5f12a14ed6"`},
		{"-:8080", "-:8081", `planned on forwarded ports "127.0.0.1:0/tcp to 8080"`},
	} {
		l := made(t, vm(nil))
		before := l.object(vm(nil)).Fingerprint
		l.Put(devID, func(d *libvirt.FakeDomain) { d.Configured = strings.Replace(d.Configured, change.from, change.to, 1) })
		if got := guard.Differences(before, l.object(vm(nil)).Fingerprint); len(got) == 0 || got[0] != change.says {
			t.Errorf("%s: %q, want %q first", change.to, got, change.says)
		}
	}
}

func TestFingerprintKnowsOnPausedAndOff(t *testing.T) {
	l := made(t, vm(nil))
	prints := map[string]bool{}
	for _, set := range []func(*libvirt.FakeDomain){
		func(*libvirt.FakeDomain) {},
		func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeEnding }, // on, until it is off
		func(d *libvirt.FakeDomain) { d.Power = libvirt.FakePaused },
		func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakeOff, "" },
	} {
		l.Put(devID, set)
		prints[l.object(vm(nil)).Fingerprint] = true
	}
	if len(prints) != 3 {
		t.Errorf("three states have %d fingerprints", len(prints))
	}
}

func TestIsVolumeOf(t *testing.T) {
	for volume, want := range map[string]bool{
		"lab.dev.kernel-0123456789ab":                     true,
		"lab.dev.initrd-0123456789ab":                     true,
		"lab.dev.console.log":                             true,
		"lab.dev.console.log.0":                           true,
		"lab.dev.console.log.old":                         false,
		"lab.dev.kernel-0123456789a":                      false,
		"lab.dev.kernel-0123456789abc":                    false,
		"lab.dev.kernel-mine12345678":                     false,
		"lab.dev.qcow2":                                   false,
		"lab.dev2.console.log":                            false,
		"lab.de.console.log":                              false,
		"lab.dev.kernel-0123456789ab.initrd-0123456789ab": false,
	} {
		if got := libvirt.IsVolumeOf(volume, "lab.dev"); got != want {
			t.Errorf("%s: %v, want %v", volume, got, want)
		}
	}
}

// No volume belongs to two objects.
func TestVolumesHaveOneOwner(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "a.kernel-0123456789ab", "a.console.log", "a.initrd-0123456789ab.console.log", "ab"})
	suffix := rapid.SampledFrom([]string{".kernel-0123456789ab", ".initrd-0123456789ab", ".console.log", ".console.log.1"})
	rapid.Check(t, func(t *rapid.T) {
		a, b := part.Draw(t, "a"), part.Draw(t, "b")
		volume := a + suffix.Draw(t, "suffix")
		if !libvirt.IsVolumeOf(volume, providers.ID(a)) {
			t.Fatalf("%s is not %s's", volume, a)
		}
		if a != b && libvirt.IsVolumeOf(volume, providers.ID(b)) {
			t.Fatalf("%s is also %s's", volume, b)
		}
	})
}

func TestMessages(t *testing.T) {
	got := libvirt.Messages([]byte(`old: an earlier run
2026-11-20 10:00:34.637+0000: starting up libvirt version: 9.0.0
LC_ALL=C \
/usr/bin/qemu-system-x86_64 \
-append 'console=ttyS0 secret' \
-msg timestamp=on
2026-11-20 10:00:34.637+0000: Domain id=2 is tainted: custom-argv
qemu-system-x86_64: warning: no
`))
	want := []string{"2026-11-20 10:00:34.637+0000: Domain id=2 is tainted: custom-argv", "qemu-system-x86_64: warning: no"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	dump := "KVM internal error. Suberror: 1\n" + strings.Repeat("RAX=0\n", 20)
	if got := libvirt.Messages([]byte("-msg \\\ntainted\n" + dump)); got[0] != "KVM internal error. Suberror: 1" || len(got) != 8 {
		t.Errorf("a dump is quoted from its end: %q", got)
	}
}

func TestMACOf(t *testing.T) {
	if got := libvirt.MACOf(devID); got != libvirt.MACOf(devID) || !strings.HasPrefix(got, "52:54:00:") || len(got) != 17 {
		t.Errorf("MAC %q", got)
	}
	if libvirt.MACOf(devID) == libvirt.MACOf(otherID) {
		t.Error("two UUIDs have one MAC")
	}
}

func TestParseCapabilities(t *testing.T) {
	a, err := libvirt.ParseCapability(`<capabilities><host><cpu><arch>x86_64</arch></cpu></host>
<guest><os_type>hvm</os_type><arch name='i686'><emulator>/usr/bin/qemu-system-i386</emulator><domain type='kvm'/></arch></guest>
<guest><os_type>hvm</os_type><arch name='x86_64'><emulator>/usr/bin/qemu-system-x86_64</emulator><domain type='qemu'/></arch></guest>
</capabilities>`)
	if err != nil || a.Emulator != "/usr/bin/qemu-system-x86_64" || a.KVM {
		t.Errorf("%+v, %v", a, err)
	}
}

// A size of a pool or a volume without a unit is in bytes.
func TestSizesWithoutAUnit(t *testing.T) {
	available, capacity, err := libvirt.SizesOf("<pool type='dir'><available>4096</available></pool>", "<volume><capacity>8192</capacity></volume>")
	if err != nil || available != 4096 || capacity != 8192 {
		t.Errorf("%d and %d bytes, %v", available, capacity, err)
	}
}
