package machine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// Decoding returns the forwarded ports and disks that a value was made of.
func TestValuesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var forwards []machine.Forward
		for i := range rapid.IntRange(0, 4).Draw(t, "forwards") {
			f := machine.Forward{
				Guest: rapid.Uint16Min(1).Draw(t, "guest"), HostIP: rapid.SampledFrom([]string{"127.0.0.1", "10.0.0.1"}).Draw(t, "ip"),
				Protocol: rapid.SampledFrom([]string{machine.TCP, machine.UDP}).Draw(t, "protocol"),
			}
			if rapid.Bool().Draw(t, "fixed") {
				f.Host = uint16(8000 + i)
			}
			forwards = append(forwards, f)
		}
		got, err := machine.DecodeForwards(machine.ForwardsValue(forwards))
		if d := cmp.Diff(forwards, got); d != "" || err != nil {
			t.Fatalf("forwards (-want +got), %v:\n%s", err, d)
		}
		var disks []string
		var want []spec.Address
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID).Draw(t, "disks") {
			a := spec.Address{Kind: spec.Disk, Name: name}
			disks, want = append(disks, a.String()), append(want, a)
		}
		had, err := machine.DecodeDisks(machine.DisksValue(disks, nil))
		if d := cmp.Diff(want, had); d != "" || err != nil {
			t.Fatalf("disks (-want +got), %v:\n%s", err, d)
		}
	})
}

func forward(guest, host, ip string) cty.Value {
	n, err := cty.ParseNumberVal(guest)
	if err != nil {
		panic(err)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"guest": n, "host": cty.StringVal(host), "host_ip": cty.StringVal(ip), "protocol": cty.StringVal(machine.TCP),
	})
}

func TestForwardsThatCannotBe(t *testing.T) {
	for _, tc := range []struct {
		name string
		all  []cty.Value
		says string
	}{
		{"no port", []cty.Value{forward("80", "http", "127.0.0.1")}, `port_forward.host = "http" is neither "auto" nor a port`},
		{"port 0", []cty.Value{forward("80", "0", "127.0.0.1")}, `port_forward.host = "0" is neither "auto" nor a port`},
		{"too large", []cty.Value{forward("80", "65536", "127.0.0.1")}, `port_forward.host = "65536" is neither "auto" nor a port`},
		{"twice", []cty.Value{forward("80", "8080", "127.0.0.1"), forward("81", "8080", "127.0.0.1")}, "port_forward: 127.0.0.1:8080/tcp is forwarded twice"},
		{"twice, on all addresses", []cty.Value{forward("80", "8080", "0.0.0.0"), forward("81", "8080", "127.0.0.1")}, "port_forward: 127.0.0.1:8080/tcp is forwarded twice"},
	} {
		if _, err := machine.DecodeForwards(cty.ListVal(tc.all)); err == nil || err.Error() != tc.says {
			t.Errorf("%s: %v, want %s", tc.name, err, tc.says)
		}
		v := machine.ForwardsAtStart("reason")(cty.NilVal, cty.ListVal(tc.all), true)
		if v.Applies != providers.Refused || v.Reason != tc.says {
			t.Errorf("%s: judged %v", tc.name, v)
		}
	}
}

// Decoding leaves out unknown values, so that a plan can be made before they are known.
func TestDecodeBeforeEverythingIsKnown(t *testing.T) {
	ip := cty.UnknownVal(cty.String)
	unknown := forward("80", "8080", "127.0.0.1").AsValueMap()
	unknown["host_ip"] = ip
	vm, err := machine.Decode(cty.ObjectVal(map[string]cty.Value{
		"running": cty.True, "cpus": cty.UnknownVal(cty.Number), "memory": cty.NumberIntVal(1 << 30),
		"port_forward":    cty.TupleVal([]cty.Value{cty.ObjectVal(unknown), forward("81", "8081", "127.0.0.1")}),
		"additional_disk": cty.TupleVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"disk": cty.UnknownVal(cty.String)})}),
		"boot":            cty.ObjectVal(map[string]cty.Value{"kernel": cty.StringVal("k"), "cmdline": cty.UnknownVal(cty.String)}),
		"image":           cty.NullVal(cty.DynamicPseudoType),
	}))
	want := machine.VM{
		Running: true, Memory: 1 << 30, Boot: &machine.Boot{Kernel: "k"},
		Forwards: []machine.Forward{{Guest: 81, Host: 8081, HostIP: "127.0.0.1", Protocol: machine.TCP}},
	}
	if d := cmp.Diff(want, vm); d != "" || err != nil {
		t.Errorf("(-want +got), %v:\n%s", err, d)
	}
	if _, err := machine.Decode(cty.NilVal); err == nil {
		t.Error("what has no attributes was read")
	}
}

// Decoding returns what a spec says for Lima, and leaves out mounts whose paths are not known yet.
func TestDecodeLima(t *testing.T) {
	text := cty.StringVal
	mount := func(source, target cty.Value, writable bool) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"source": source, "target": target, "writable": cty.BoolVal(writable)})
	}
	later, none := cty.UnknownVal(cty.String), cty.NullVal(cty.String)
	vm, err := machine.Decode(cty.ObjectVal(map[string]cty.Value{
		"template": text("images: []\n"), "plain": cty.True,
		"params": cty.MapVal(map[string]cty.Value{"ENGINE": text("moby"), "LATER": later}),
		"mount": cty.ListVal([]cty.Value{
			mount(text("src"), none, true), mount(later, text("/a"), false), mount(text("a"), later, false), mount(text("~/b"), text("/b"), false),
		}),
	}))
	want := machine.VM{
		Template: "images: []\n", Plain: true, Params: map[string]string{"ENGINE": "moby"},
		Mounts: []machine.Mount{{Source: "src", Writable: true}, {Source: "~/b", Target: "/b"}},
	}
	if d := cmp.Diff(want, vm); d != "" || err != nil {
		t.Errorf("(-want +got), %v:\n%s", err, d)
	}
	vm, err = machine.Decode(cty.ObjectVal(map[string]cty.Value{
		"template": none, "plain": cty.NullVal(cty.Bool), "params": cty.NullVal(cty.Map(cty.String)),
		"mount": cty.ListValEmpty(mount(none, none, false).Type()),
	}))
	if d := cmp.Diff(machine.VM{}, vm); d != "" || err != nil {
		t.Errorf("without them (-want +got), %v:\n%s", err, d)
	}
}

func TestDisksThatCannotBe(t *testing.T) {
	for says, disks := range map[string][]string{
		`additional_disk.disk = "vm.a" is no disk of this spec`: {"vm.a"},
		`additional_disk.disk = "d" is no disk of this spec`:    {"d"},
		"additional_disk: disk.a is attached twice":             {"disk.a", "disk.b", "disk.a"},
	} {
		if _, err := machine.DecodeDisks(machine.DisksValue(disks, nil)); err == nil || err.Error() != says {
			t.Errorf("%q: %v, want %s", disks, err, says)
		}
	}
}

func TestJudgeDisks(t *testing.T) {
	for _, tc := range []struct {
		before, after []string
		running       providers.Applies
	}{
		{nil, []string{"disk.a"}, providers.Live},
		{[]string{"disk.a"}, []string{"disk.a", "disk.b"}, providers.Live},
		{[]string{"disk.a"}, []string{"disk.b", "disk.a"}, providers.Restart},
		{[]string{"disk.a", "disk.b"}, []string{"disk.b", "disk.a"}, providers.Restart},
		{[]string{"disk.a", "disk.b"}, []string{"disk.a"}, providers.Restart},
		{[]string{"disk.a"}, []string{"disk.a", "disk.a"}, providers.Refused},
	} {
		if got := machine.Disks(machine.DisksValue(tc.before, nil), machine.DisksValue(tc.after, nil), true); got.Applies != tc.running {
			t.Errorf("%q to %q while it runs: %v, want %s", tc.before, tc.after, got, tc.running)
		}
		if got := machine.Disks(machine.DisksValue(tc.before, nil), machine.DisksValue(tc.after, nil), false); tc.running != providers.Refused && got.Applies != providers.Live {
			t.Errorf("%q to %q while it is off: %v", tc.before, tc.after, got)
		}
	}
}

// What gets its disks at its start needs a restart for any change of them, and none while it is off.
func TestJudgeDisksAtStart(t *testing.T) {
	judge := machine.DisksAtStart("at the start")
	one, two := machine.DisksValue([]string{"disk.a"}, nil), machine.DisksValue([]string{"disk.a"}, []string{"/mnt"})
	for running, want := range map[bool]providers.Applies{true: providers.Restart, false: providers.Live} {
		if got := judge(one, two, running); got.Applies != want {
			t.Errorf("running %t: %+v", running, got)
		}
	}
	if got := judge(one, machine.DisksValue([]string{"disk.a", "disk.a"}, nil), true); got.Applies != providers.Refused {
		t.Errorf("a disk attached twice: %+v", got)
	}
}

func TestJudgeSize(t *testing.T) {
	size := func(n int64) cty.Value { return cty.NumberIntVal(n) }
	for _, tc := range []struct {
		before, after cty.Value
		want          providers.Applies
	}{
		{size(1), size(2), providers.Live},
		{size(2), size(1), providers.Refused},
		{size(2), cty.UnknownVal(cty.Number), providers.Live},
		{cty.NullVal(cty.DynamicPseudoType), size(1), providers.Live},
	} {
		if got := machine.Grows(tc.before, tc.after, true); got.Applies != tc.want {
			t.Errorf("%#v to %#v: %v, want %s", tc.before, tc.after, got, tc.want)
		}
	}
}

// A port that listens at a known place is claimed, though the guest's port is not known yet.
func TestForwardToAnUnknownGuestPort(t *testing.T) {
	f := forward("80", "8080", "127.0.0.1").AsValueMap()
	f["guest"] = cty.UnknownVal(cty.Number)
	all, err := machine.DecodeForwards(cty.TupleVal([]cty.Value{cty.ObjectVal(f)}))
	if err != nil || len(all) != 1 || all[0].Claim().Key != "127.0.0.1:8080/tcp" {
		t.Errorf("%v, %v", all, err)
	}
}

// Triggers without a value are none.
func TestDecodeTriggers(t *testing.T) {
	for _, v := range []cty.Value{cty.MapValEmpty(cty.String), cty.MapVal(map[string]cty.Value{"a": cty.NullVal(cty.String)})} {
		vm, err := machine.Decode(cty.ObjectVal(map[string]cty.Value{"restart_triggers": v}))
		if err != nil || vm.Triggers != nil {
			t.Errorf("%#v: %#v, %v", v, vm.Triggers, err)
		}
	}
}
