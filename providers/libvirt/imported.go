package libvirt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// isForeign reports whether vmctl did not make a domain, whoever manages it: the domain has
// its own network, to which vmctl adds nothing.
func (d description) isForeign() bool {
	return d.mark().Imported || d.Owner == nil && d.SSH == nil && d.Data == ""
}

// foreign reports whether vmctl did not make the domain of the step.
func (j *job) foreign() bool { return j.seen != nil && j.seen.configured.isForeign() }

// writeForeign writes the mark into a domain that vmctl did not make, and changes only the
// attributes that are not as wanted.
func (j *job) writeForeign(ctx context.Context) error {
	existing, err := j.xml(ctx, toDefine)
	if err != nil {
		return err
	}
	boot, err := j.foreignBoot(ctx)
	if err != nil {
		return err
	}
	text, err := j.alterForeign(existing, boot)
	if err != nil {
		return asFailure(err, fmt.Sprintf("describe %s to libvirt", j.Name))
	}
	mark := owner{
		Mark: providers.Mark{
			ID: j.settings.Project.Lineage(), Project: j.settings.Project.Name, Address: j.Address,
			Of: j.Object, Generation: j.Generation,
		},
		Accel: j.want.Accel, CPUs: j.want.CPUs, Memory: j.want.Memory, Boot: boot, Forwards: j.want.Forwards,
		Disks: j.markedDisks(), Imported: true, Kept: j.kept(),
	}
	element, err := mark.element()
	if err != nil {
		return err
	}
	if text, err = withMark(text, element); err != nil {
		return fail(err, "write the mark of %s", j.Name)
	}
	if err := j.Define(ctx, text); err != nil {
		return fail(err, "define %s", j.Name)
	}
	return nil
}

// kept returns the files of the disks that the domain had when it was imported, without its
// disks that are resources of the spec.
func (j *job) kept() []string {
	if o := j.seen.owner(); o != nil {
		return o.Kept
	}
	var all []string
	for _, d := range j.seen.configured.disks(j.plugged.files) {
		if !slices.ContainsFunc(j.plugged.disks, func(p pluggedDisk) bool { return j.plugged.files.same(p.Path, j.plugged.pathOf(d)) }) {
			all = append(all, d.file())
		}
	}
	return all
}

// foreignBoot returns the boot files for the domain: the present ones, or new uploads if
// their content is not as wanted.
func (j *job) foreignBoot(ctx context.Context) (markedBoot, error) {
	now := j.markedBoot(j.seen.configured)
	b := j.want.Boot
	switch {
	case b == nil:
		return markedBoot{}, nil
	case now.KernelSHA256 == b.KernelSHA256 && now.InitrdSHA256 == b.InitrdSHA256:
		return now, nil
	}
	in, err := j.usablePool(ctx, "the files of "+j.Name)
	if err != nil {
		return now, err
	}
	now = markedBoot{KernelSHA256: b.KernelSHA256, InitrdSHA256: b.InitrdSHA256}
	if now.Kernel, now.KernelStamp, err = j.kernel(ctx, in); err != nil || b.Initrd == "" {
		return now, err
	}
	initrd := in.file(kindInitrd.name(string(j.Object), b.InitrdSHA256))
	now.Initrd, now.InitrdStamp, err = j.bootFile(ctx, initrd, content{source: j.abs(b.Initrd), sha256: b.InitrdSHA256}, nil)
	return now, err
}

// markedBoot returns the boot files of a domain: from its mark, else with the digests of the
// files, if this host can read them.
func (p *Provider) markedBoot(d description) markedBoot {
	if d.Owner != nil {
		return d.Owner.Boot
	}
	b := markedBoot{Kernel: d.Kernel, Initrd: d.Initrd}
	if !p.location.Here {
		return markedBoot{}
	}
	b.KernelSHA256, b.InitrdSHA256 = sha256Of(d.Kernel), sha256Of(d.Initrd)
	if b.KernelSHA256 == "" || d.Initrd != "" && b.InitrdSHA256 == "" {
		return markedBoot{}
	}
	return b
}

// sha256Of returns the digest of a file, "" if it cannot be read.
func sha256Of(file string) string {
	if file == "" {
		return ""
	}
	f, _, err := openRegular(file)
	if err != nil {
		return ""
	}
	defer closeQuietly(f)
	sum, err := digestOf(f)
	if err != nil {
		return ""
	}
	return sum
}

// alterForeign changes the parts of a domain that are not as wanted, and keeps all else.
func (j *job) alterForeign(existing string, boot markedBoot) (string, error) {
	now, err := describe(existing)
	if err != nil {
		return "", err
	}
	now.Owner = j.seen.owner()
	b := blueprint{Disks: j.parts(), Volumes: j.plugged.listing}
	sized := now.Memory != j.want.Memory
	counted := now.CPUsNow != j.want.CPUs
	moved := j.want.Accel != machine.AccelAuto && now.accel() != j.want.Accel
	booted := now.Kernel != boot.Kernel || now.Initrd != boot.Initrd || j.want.Boot != nil && now.Cmdline != j.want.Boot.Cmdline
	if plugged := now.Owner != nil && !j.hasDisks(now) || now.Owner == nil && !j.hasParts(now); !sized && !counted && !moved && !booted && !plugged {
		return existing, nil
	}
	changed, err := j.changed(existing, func(d *libvirtxml.Domain) error {
		if sized {
			d.Memory, d.CurrentMemory = &libvirtxml.DomainMemory{Unit: "b", Value: uint(j.want.Memory)}, nil
		}
		if counted {
			d.VCPU, d.VCPUs = &libvirtxml.DomainVCPU{Value: uint(j.want.CPUs)}, nil
		}
		if moved {
			setAccel(d, map[string]string{machine.AccelKVM: typeKVM, machine.AccelTCG: typeTCG}[j.want.Accel])
		}
		if booted {
			if d.OS == nil {
				d.OS = &libvirtxml.DomainOS{}
			}
			d.OS.Kernel, d.OS.Initrd, d.OS.Cmdline = boot.Kernel, boot.Initrd, ""
			if j.want.Boot != nil {
				d.OS.Cmdline = j.want.Boot.Cmdline
			}
		}
		kept := owner{Kept: j.kept()}
		b.setDisks(d, func(x drive) bool {
			return x.isOther() || b.Volumes.keeps(kept, x)
		})
		return nil
	})
	return cmp.Or(changed, existing), err
}

// hasParts reports whether a domain without a mark has the additional disks.
func (j *job) hasParts(d description) bool {
	var there []string
	for _, x := range d.disks(j.plugged.files) {
		there = append(there, j.plugged.pathOf(x))
	}
	return j.areParts(there)
}

// withMark puts the mark into a domain's XML, and changes no other byte.
func withMark(text, element string) (string, error) {
	decoder := xml.NewDecoder(bytes.NewReader([]byte(text)))
	depth := 0
	for {
		before := decoder.InputOffset()
		token, err := decoder.Token()
		if err != nil {
			return "", fmt.Errorf("read the domain's description: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			if depth != 2 || t.Name.Local != "metadata" {
				continue
			}
			from := decoder.InputOffset()
			if err := decoder.Skip(); err != nil {
				return "", fmt.Errorf("read the domain's metadata: %w", err)
			}
			after, inner := decoder.InputOffset(), ""
			if after > from { // else the element is <metadata/>
				inner = text[from:strings.LastIndex(text[:after], "</")]
			}
			inner, err := withOwner(inner, element)
			return text[:before] + "<metadata>" + inner + "</metadata>" + text[after:], err
		case xml.EndElement:
			if depth--; depth == 0 {
				return text[:before] + "<metadata>" + element + "</metadata>\n" + text[before:], nil
			}
		}
	}
}
