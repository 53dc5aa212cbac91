package lima

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/yamltext"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// check returns the flaws of a want that no instance of Lima could fulfil.
func check(kind spec.Kind, want cty.Value, vmTypes []string) []spec.Flaw {
	if kind == spec.Disk {
		return machine.WholeSectors(want, "size")
	}
	flaws := machine.WholeSectors(ctyread.Attr(want, "root_disk"), "root_disk.size")
	add := func(path, summary, format string, args ...any) {
		flaws = append(flaws, spec.Flaw{Path: path, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	if f := ctyread.Attr(want, "port_forward"); f != cty.NilVal {
		forwards, err := machine.DecodeForwards(f)
		if err != nil {
			add("port_forward", "Impossible port_forward", "The ports cannot be forwarded: %v.", err)
		}
		udp := slices.ContainsFunc(forwards, func(f machine.Forward) bool { return f.Protocol == machine.UDP })
		if udp && ctyread.True(want, "plain") {
			add("port_forward", "Impossible port_forward", "In plain mode Lima forwards TCP ports only: leave `plain` out, or forward the port by `protocol = \"tcp\"`.")
		}
	}
	for _, m := range ctyread.List(ctyread.Attr(want, "mount")) {
		if strings.Contains(ctyread.Text(m, "source")+"\n"+ctyread.Text(m, "target"), "{{") {
			add("mount", "Impossible mount", "Lima expands `{{` in the paths of mounts: mount a folder without it.")
		}
	}
	if ctyread.Known(ctyread.Attr(want, "plain")) && ctyread.True(want, "plain") && len(ctyread.List(ctyread.Attr(want, "mount"))) > 0 {
		add("mount", "Impossible mount", "In plain mode Lima mounts nothing: leave `plain` out, or `mount`.")
	}
	return append(flaws, checkTemplate(want, vmTypes)...)
}

// checkTemplate returns the flaws of a template, by itself and beside the attributes.
func checkTemplate(want cty.Value, vmTypes []string) []spec.Flaw {
	var flaws []spec.Flaw
	add := func(format string, args ...any) {
		flaws = append(flaws, spec.Flaw{Path: "template", Summary: "Unsupported template", Detail: fmt.Sprintf(format, args...)})
	}
	template := ctyread.KnownAttr(want, "template")
	if template == cty.NilVal {
		if ctyread.Attr(want, "template") == cty.NilVal || ctyread.Attr(want, "template").IsKnown() {
			if image := ctyread.Attr(want, "image"); image == cty.NilVal || image.IsNull() {
				flaws = append(flaws, spec.Flaw{
					Path: "image", Summary: "Nothing to boot",
					Detail: "An instance of Lima is made from an image: write `image = \"images/debian.qcow2\"`, or a `template` with `images`.",
				})
			}
		}
		return flaws
	}
	doc, err := yamltext.Parse(template.AsString())
	if err != nil { // the language has refused it, or it has the place of the template
		return nil
	}
	for _, flaw := range checkFields(doc) {
		add("%s", flaw)
	}
	for key, attr := range map[string]string{keyCPUs: "cpus", keyMemory: "memory", keyDisk: "root_disk { size }", keyPlain: "plain"} {
		if _, has := doc[key]; has {
			add("It has `%s`, which is the attribute `%s` of the block: move it there.", key, attr)
		}
	}
	for key, block := range map[string]string{keyMounts: "mount", keyForwards: "port_forward", keyDisks: "additional_disk"} {
		if _, has := doc[key]; has && len(ctyread.List(ctyread.Attr(want, block))) > 0 {
			add("It has `%s` beside a block `%s`: write all of them in one of the two.", key, block)
		}
	}
	list, _ := doc[keyDisks].([]any)
	for _, entry := range list {
		if name, loses := losesLabel(entry); loses {
			add("Lima would format the disk %q of its `%s` anew at every start, since the name is too long for the label by which Lima finds it: "+
				"use a block `additional_disk`, or write `format: false` and mount it by a script.", name, keyDisks)
		}
	}
	if name := namedNetwork(doc); name != "" {
		add("Its `networks` have `lima: %s`. Programs of limactl run such networks, and vmctl starts none of them: the instance would not start. "+
			"Leave them out: instances reach this host and the Internet without them, and each other by `port_forward`.", name)
	}
	_, images := doc[keyImages]
	image := ctyread.KnownAttr(want, "image") != cty.NilVal
	switch {
	case images && image:
		add("It has `images` beside `image`: write one of the two.")
	case !images && !image:
		add("It has no `images`, and there is no `image`: nothing could boot.")
	}
	if kind, has := doc[keyVMType].(string); has && !slices.Contains(vmTypes, kind) {
		add("Its vmType is %q, and this machine runs %s only: write `vmType: qemu`, or leave it out.", kind, strings.Join(vmTypes, " and "))
	}
	if kind := doc[keyVMType]; kind == driverWSL2 && len(ctyread.List(ctyread.Attr(want, "additional_disk"))) > 0 {
		add("Its vmType is \"wsl2\", which has no additional disks: leave `additional_disk` out.")
	}
	slices.SortFunc(flaws, func(a, b spec.Flaw) int { return strings.Compare(a.Detail, b.Detail) })
	return flaws
}

// namedNetwork returns the first network of a definition that limactl runs, such as user-v2; "": it has none.
func namedNetwork(doc map[string]any) string {
	list, _ := doc[keyNetworks].([]any)
	for _, entry := range list {
		network, _ := entry.(map[string]any)
		if name := text(network["lima"], ""); name != "" {
			return name
		}
	}
	return ""
}

// judgeTemplate judges an edit of a template: what Lima reads only when it makes the root disk needs
// another instance.
func judgeTemplate(before, after cty.Value, running bool) providers.Verdict {
	had, has := parsed(before), parsed(after)
	for _, key := range []string{keyImages, keyVMType, keyArch} {
		if !equal(had[key], has[key]) {
			return providers.Verdict{Applies: providers.Replace, Reason: fmt.Sprintf("Lima reads its %s only when the instance is made", key)}
		}
	}
	return machine.AtStart(atBoot)(before, after, running)
}

func parsed(v cty.Value) map[string]any {
	if !ctyread.Known(v) {
		return nil
	}
	doc, err := yamltext.Parse(v.AsString())
	if err != nil {
		return nil
	}
	return doc
}

// equal reports whether two parts of documents mean the same.
func equal(a, b any) bool {
	before, err := yamltext.Marshal(map[string]any{"": a})
	after, err2 := yamltext.Marshal(map[string]any{"": b})
	return err == nil && err2 == nil && before == after
}

// growsAtStart judges the size of a root disk: Lima grows it when the instance starts.
func growsAtStart(before, after cty.Value, running bool) providers.Verdict {
	if v := machine.Grows(before, after, running); v.Applies == providers.Refused {
		return v
	}
	return machine.AtStart("Lima grows it when the instance starts")(before, after, running)
}
