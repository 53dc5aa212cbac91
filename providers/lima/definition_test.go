package lima

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/internal/yamltext"
	"vmctl/providers/machine"
)

// drawVM draws a VM without a template.
func drawVM(t *rapid.T) machine.VM {
	vm := machine.VM{
		CPUs: rapid.Uint64Range(1, 64).Draw(t, "cpus"), Memory: rapid.Uint64Range(1, 1<<40).Draw(t, "memory"),
		Accel: rapid.SampledFrom([]string{machine.AccelAuto, machine.AccelKVM, machine.AccelTCG}).Draw(t, "accel"),
		Plain: rapid.Bool().Draw(t, "plain"), RootDisk: rapid.Uint64Range(0, 1<<40).Draw(t, "root disk"),
		SSH: machine.Login{User: rapid.SampledFrom([]string{"root", "ann"}).Draw(t, "user")},
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}`), 0, 3, rapid.ID).Draw(t, "params") {
		if vm.Params == nil {
			vm.Params = map[string]string{}
		}
		vm.Params[name] = rapid.SampledFrom([]string{"", "yes", "1", "a b", "é\n"}).Draw(t, "value")
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "mounts") {
		vm.Mounts = append(vm.Mounts, machine.Mount{Source: string(rune('a' + i)), Target: rapid.SampledFrom([]string{"", "/in"}).Draw(t, "target"), Writable: i == 0})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "forwards") {
		f := machine.Forward{Guest: uint16(80 + i), HostIP: loopback, Protocol: machine.TCP}
		if rapid.Bool().Draw(t, "chosen") {
			f.Host = uint16(8080 + i)
		}
		vm.Forwards = append(vm.Forwards, f)
	}
	return vm
}

// drawTemplate draws what a template has beside the attributes.
func drawTemplate(t *rapid.T) map[string]any {
	all := map[string]any{
		"images": []any{map[string]any{"location": "/img"}}, "env": map[string]any{"A": "1"}, "provision": []any{map[string]any{"mode": "user", "script": "true"}},
		"param": map[string]any{"mode": "fast"}, "user": map[string]any{"name": "ann"}, "ssh": map[string]any{"localPort": 60022}, "mountType": "reverse-sshfs",
		"portForwards": []any{map[string]any{"guestPort": 5353, "hostPort": 53530}, map[string]any{"guestPort": 5355, "proto": "any", "ignore": true}},
	}
	doc := map[string]any{}
	for _, key := range rapid.SliceOfDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(all))), rapid.ID).Draw(t, "keys") {
		doc[key] = all[key]
	}
	return doc
}

// A definition says what was wanted, and which part of it is of the template: whatever somebody else changes in that
// part is seen, and is no edit of an attribute: the ports of a template are no `port_forward`. It forwards no port that
// nobody asked for.
//
// Trap 12: Lima v2.2.0 ends its list of forwarded ports by a rule for all of the guest's, so that the mDNS and LLMNR
// ports of a guest, 5353 and 5355, are this host's as soon as somebody in the guest listens there.
func TestDefinition(t *testing.T) {
	p := &Provider{home: "/home", cpus: 4}
	p.settings.Files = "/files"
	rapid.Check(t, func(t *rapid.T) {
		vm, rest := drawVM(t), drawTemplate(t)
		if len(rest) > 0 {
			text, err := yamltext.Marshal(rest)
			if err != nil {
				t.Fatal(err)
			}
			vm.Template = text
		}
		if rest[keyForwards] != nil { // both at once are refused
			vm.Forwards = nil
		}
		disks := []usedDisk{{name: "one"}, {name: "two", fsType: "ext4"}, {name: "three", mountPoint: "/mnt/it's"}}[:rapid.IntRange(0, 3).Draw(t, "disks")]
		w, err := p.compose(parts{vm: vm, rest: rest, disks: disks, authorized: []string{"ssh-ed25519 AAAA it's"}})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := yamltext.Parse(w.text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, w.text)
		}
		m := &mark{Keys: w.keys, Params: w.params, Template: vm.Template, Base: w.base, Forwards: w.ports, Auto: w.auto, Sources: map[string]string{}}
		for _, mount := range vm.Mounts {
			m.Sources[sourceKey(filepath.Join("/files", mount.Source), mount.Target)] = mount.Source
		}
		s := &instance{name: "x", mark: m, doc: doc, root: vm.RootDisk}
		c := p.config(s, doc, vm.Accel, nil, anyName)
		list, _ := doc[keyForwards].([]any)
		for _, port := range ignoredPorts {
			last := map[string]any{"guestPort": int64(port), "proto": "any", "ignore": true}
			if !slices.ContainsFunc(list[len(list)-len(ignoredPorts):], func(e any) bool { return equal(e, last) }) {
				t.Errorf("the port %d of the guest is forwarded by default:\n%s", port, w.text)
			}
		}
		want := machine.Config{CPUs: vm.CPUs, Memory: vm.Memory, Accel: vm.Accel, Forwards: vm.Forwards}
		got := machine.Config{CPUs: c.CPUs, Memory: c.Memory, Accel: c.Accel, Forwards: c.Forwards}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("read back (-want +got):\n%s%s", diff, w.text)
		}
		if template := c.Others["template"]; vm.Template == "" != template.IsNull() || vm.Template != "" && template.AsString() != vm.Template {
			t.Errorf("the template read back is %#v", template)
		}
		params := map[string]string{}
		if !c.Others["params"].IsNull() {
			for name, value := range c.Others["params"].AsValueMap() {
				params[name] = value.AsString()
			}
		}
		if !maps.Equal(params, vm.Params) {
			t.Errorf("the parameters read back are %v, and were %v", params, vm.Params)
		}
		if !slices.Equal(namesOf(doc), namesOf(map[string]any{keyDisks: additionalDisks(disks)})) || len(namesOf(doc)) != len(disks) {
			t.Errorf("the disks read back are %v", namesOf(doc))
		}
		if n := c.Others["mount"].LengthInt(); n != len(vm.Mounts) {
			t.Errorf("%d mounts read back of %d", n, len(vm.Mounts))
		}
		for i, v := range c.Others["mount"].AsValueSlice() {
			if source := v.GetAttr("source").AsString(); source != vm.Mounts[i].Source {
				t.Errorf("the folder read back is %s", source)
			}
		}
		changed := maps.Clone(doc)
		changed["env"] = map[string]any{"B": "by hand"}
		if now := templateOf(changed, m); now == vm.Template {
			t.Error("a change by hand is not seen in the template")
		}
	})
}

// Lima's ways to write a size, and vmctl's own.
func TestSizes(t *testing.T) {
	for text, want := range map[string]uint64{"4GiB": 4 << 30, "4G": 4 << 30, "512MB": 512 << 20, "1.5 GiB": 3 << 29, "1024": 1024, "100B": 100} {
		if got, ok := parseSize(text); !ok || got != want {
			t.Errorf("%s is %d, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "much", "-1GiB", "1XiB"} {
		if got, ok := parseSize(text); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 1<<45).Draw(t, "bytes")
		if got, ok := parseSize(size(n)); !ok || got != n {
			t.Errorf("%s is %d, and was %d", size(n), got, n)
		}
	})
}

// Every combination of counts has a row.
func TestPhases(t *testing.T) {
	for _, a := range []count{none, one, several, unseen} {
		for _, d := range []count{none, one, several, unseen} {
			row := phaseOf(a, d)
			if sure := a != unseen && d != unseen; sure && row.state == stateUnknown {
				t.Errorf("%s %s: everything was read, and nothing is known", a, d)
			}
			if row.state != "off" && row.state != "running" && row.reason == "" {
				t.Errorf("%s %s is %q without a reason", a, d, row.state)
			}
		}
	}
}
