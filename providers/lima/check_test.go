//go:build unix

package lima_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/lima"
	"vmctl/providers/providertest"
	"vmctl/spec"
)

// What no instance could be made from is a mistake of the spec, which names the field of the template.
//
// row L50, of templates
func TestCheck(t *testing.T) {
	template := func(lines ...string) func(map[string]cty.Value) {
		return set("template", cty.StringVal(strings.Join(lines, "\n")))
	}
	noImage := func(all map[string]cty.Value) {
		all["image"] = cty.NullVal(all["image"].Type())
		all["root_disk"] = cty.NullVal(all["root_disk"].Type())
	}
	mount := set("mount", cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"source": cty.StringVal("/src"), "target": cty.NullVal(cty.String), "writable": cty.False,
	})}))
	half := set("root_disk", cty.ObjectVal(map[string]cty.Value{"size": cty.NumberIntVal(2<<20 + 100)}))
	check := lima.Type(lima.Host{}).Check
	for name, c := range map[string]struct {
		edits []func(map[string]cty.Value)
		want  []string // the beginnings of the flaws' details
	}{
		"image":                   {},
		"half a sector":           {edits: []func(map[string]cty.Value){half}, want: []string{"A disk has whole sectors of 512 bytes, and 2097252 is not a multiple of 512. The next larger size is `2097664B`."}},
		"nothing to boot":         {edits: []func(map[string]cty.Value){noImage}, want: []string{"An instance of Lima is made from an image"}},
		"template with images":    {edits: []func(map[string]cty.Value){noImage, template("images: [{location: a.qcow2}]")}},
		"template without images": {edits: []func(map[string]cty.Value){noImage, template("arch: x86_64")}, want: []string{"It has no `images`, and there is no `image`"}},
		"images twice":            {edits: []func(map[string]cty.Value){template("images: [{location: a.qcow2}]")}, want: []string{"It has `images` beside `image`"}},
		"base":                    {edits: []func(map[string]cty.Value){template("base: other.yaml")}},
		"base, and more":          {edits: []func(map[string]cty.Value){template("base: null", "cpus: 2")}, want: []string{"It has `cpus`, which is the attribute `cpus`"}},
		"no bases, and a long label": {
			edits: []func(map[string]cty.Value){template("base: []", "additionalDisks: [a-name-of-17-bytes]")},
			want:  []string{"Lima would format the disk \"a-name-of-17-bytes\" of its `additionalDisks` anew at every start"},
		},
		"attributes in the template": {edits: []func(map[string]cty.Value){template("cpus: 2", "plain: true")}, want: []string{"It has `cpus`, which is the attribute `cpus`", "It has `plain`, which is the attribute `plain`"}},
		"another driver":             {edits: []func(map[string]cty.Value){template("vmType: vz")}, want: []string{"Its vmType is \"vz\""}},
		"mounts in both":             {edits: []func(map[string]cty.Value){mount, template("mounts: []")}, want: []string{"It has `mounts` beside a block `mount`"}},
		"mount in plain mode":        {edits: []func(map[string]cty.Value){mount, set("plain", cty.True)}, want: []string{"In plain mode Lima mounts nothing"}},
		"a network of limactl":       {edits: []func(map[string]cty.Value){template("networks: [{lima: user-v2}]")}, want: []string{"Its `networks` have `lima: user-v2`"}},
		"a network of its own":       {edits: []func(map[string]cty.Value){template("networks: [{socket: /run/net.sock}]")}},
		"mount":                      {edits: []func(map[string]cty.Value){mount}},
		"unknown field":              {edits: []func(map[string]cty.Value){template("nonsense: 1")}, want: []string{"Lima knows no field `nonsense`."}},
		"unknown field of a field": {
			edits: []func(map[string]cty.Value){template("provision: [{mode: user, scrip: a}]", "ssh: {localport: 22}", "vmOpts: {qemu: {cpu: max}}")},
			want: []string{
				"Lima knows no field `provision[0].scrip`. Did you mean \"script\"?", "Lima knows no field `ssh.localport`. Did you mean \"localPort\"?",
				"Lima knows no field `vmOpts.qemu.cpu`.",
			},
		},
		"other shapes": {
			edits: []func(map[string]cty.Value){template("ssh: 3", "dns: {a: b}", "message: [a]")},
			want:  []string{"Lima's field `dns` is a list, not a mapping.", "Lima's field `message` is a value, not a list.", "Lima's field `ssh` is a mapping, not a value."},
		},
		"fields with any key, and short forms": {edits: []func(map[string]cty.Value){
			template("param: {any: key}", "env: {A: b}", "vmOpts: {other: {a: [b]}}", "provision: [{mode: user, file: a.sh}]", "networks: null", "hostResolver: {hosts: {a.b: c}}"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for i, f := range check(spec.VM, want(c.edits...)) {
				detail := f.Detail
				if i < len(c.want) && strings.HasPrefix(detail, c.want[i]) {
					detail = c.want[i]
				}
				got = append(got, detail)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("flaws (-want +got):\n%s", diff)
			}
		})
	}
}

// A disk of a size that vmctl-lima would round up is refused before it is made.
func TestCheckDisk(t *testing.T) {
	check := lima.Type(lima.Host{}).Check
	all := providertest.Disk().AsValueMap()
	if got := check(spec.Disk, cty.ObjectVal(all)); len(got) > 0 {
		t.Errorf("flaws %v", got)
	}
	all["size"] = cty.NumberIntVal(1000)
	if got := check(spec.Disk, cty.ObjectVal(all)); len(got) != 1 || got[0].Path != "size" || !strings.Contains(got[0].Detail, "1000 is not a multiple of 512. The next larger size is `1024B`.") {
		t.Errorf("flaws %v of half a sector", got)
	}
}

// What Lima reads once, when it makes the instance, needs another instance.
func TestEditsOfTemplates(t *testing.T) {
	judge := lima.Type(lima.Host{}).Kinds[spec.VM]["template"].Judge
	const before = "images: [{location: a.qcow2}]\narch: x86_64\nprovision: [{mode: system, script: a}]\n"
	for edit, want := range map[string]providers.Applies{
		"a.qcow2 b.qcow2": providers.Replace, "x86_64 aarch64": providers.Replace, "provision: vmType: qemu\nprovision:": providers.Replace,
		"a} b}": providers.Restart, "system user": providers.Restart,
	} {
		old, with, _ := strings.Cut(edit, " ")
		after := strings.ReplaceAll(before, old, with)
		if got := judge(cty.StringVal(before), cty.StringVal(after), true).Applies; got != want {
			t.Errorf("%s: applies by %s, want %s", edit, got, want)
		}
	}
}
