package libvirt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// layer describes something that others made on the disks of a domain: a snapshot, an
// overlay, a checkpoint, a running copy. While it exists, vmctl changes neither these disks
// nor the domain's definition: a definition without it would lose the data written since.
type layer struct {
	what string // "disk vda writes into /x/d.snap, an overlay of /x/d.qcow2"
	end  string // the command that merges or removes it
}

// snapshot describes a snapshot of a domain, as libvirt lists it.
type snapshot struct {
	Name     string
	External bool // its data are files of their own
}

// given returns the first file in the mark that a drive's chain has: the drive's own file, at
// path, or a file below its overlay. "": it has none.
func (o owner) given(d drive, path string, files *sameFiles) string {
	var ours []string
	for _, m := range o.Disks {
		ours = append(ours, m.Path)
	}
	ours = append(append(ours, o.Image.Root), o.Kept...)
	for _, file := range append([]string{path}, d.Under...) {
		if own := files.among(file, ours); own != "" {
			return own
		}
	}
	return ""
}

// layers lists the layers that others made on the disks of vmctl's domain.
func (s observedDomain) layers(uri string, files *sameFiles) []layer {
	if s.owner() == nil {
		return nil
	}
	o := s.mark()
	virsh := func(words ...string) string { return "virsh -c " + uri + " " + strings.Join(words, " ") }
	var all []layer
	add := func(l layer) {
		if !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	for _, d := range s.drives() {
		if base := o.given(d, d.Path, files); base != "" && !files.same(base, d.Path) {
			end := virsh("blockcommit", s.Name, d.Target, "--active", "--pivot", "--wait")
			if !s.power.on() {
				end = virsh("start", s.Name) + ", then: " + end
			}
			add(layer{what: fmt.Sprintf("disk %s writes into %s, an overlay of %s", d.Target, d.Path, base), end: end})
		}
		if d.Job != "" {
			add(layer{what: fmt.Sprintf("disk %s has a running block job (%s)", d.Target, d.Job), end: virsh("blockjob", s.Name, d.Target, "--abort")})
		}
	}
	for _, snap := range s.snapshots {
		end := virsh("snapshot-delete", s.Name, snap.Name)
		if snap.External { // its overlay is merged by a commit, and this forgets the rest
			end += " --metadata"
		}
		add(layer{what: "it has the snapshot " + snap.Name, end: end})
	}
	for _, name := range s.checkpoints {
		add(layer{what: "it has the checkpoint " + name, end: virsh("checkpoint-delete", s.Name, name)})
	}
	return all
}

// The long operations of libvirt that have a name here (virDomainJobOperation).
const (
	jobSave           = 2
	jobMigrationIn    = 4
	jobMigrationOut   = 5
	jobSnapshot       = 6
	jobDump           = 8
	jobBackup         = 9
	jobSnapshotDelete = 10
)

// jobName names a long operation on a domain. One that this vmctl does not know is a job,
// too: it is not to be cut off.
func jobName(operation int) string {
	switch operation {
	case jobSave:
		return "save"
	case jobMigrationIn, jobMigrationOut:
		return "migration"
	case jobSnapshot, jobSnapshotDelete:
		return "snapshot"
	case jobDump:
		return "dump"
	case jobBackup:
		return "backup"
	default:
		return "job"
	}
}

// endJob returns the command that ends the domain's long operation.
func (s observedDomain) endJob(uri string) string {
	return "virsh -c " + uri + " domjobabort " + s.Name
}

// underWay describes the domain's long operation.
func (s observedDomain) underWay() string { return "a " + s.job + " of it is under way" }

// layerFindings returns the findings about the layers and operations of others on the disks
// of a domain.
func (s observedDomain) layerFindings(uri string, files *sameFiles) []providers.Finding {
	var found []providers.Finding
	if s.job != "" {
		busy := providers.Finding{
			Kind: providers.FindBusy, Object: s.Name, Evidence: []string{s.underWay()}, Next: providers.Say("to end it: " + s.endJob(uri)),
		}
		if o := s.owner(); o != nil {
			busy.Address = o.Address
		}
		found = append(found, busy)
	}
	for _, l := range s.layers(uri, files) {
		found = append(found, providers.Finding{
			Kind: providers.FindSnapshot, Object: s.Name, Address: s.owner().Address, Evidence: []string{l.what}, Next: providers.Say(l.end),
		})
	}
	return found
}

// onLayers refuses the steps of a change that would touch layers; nil: there are none.
func onLayers(o *providers.Object) error {
	if o == nil || !machine.Found(o, providers.FindSnapshot) {
		return nil
	}
	var layers []string
	var ends []providers.Advice
	for _, f := range o.Findings {
		if f.Kind == providers.FindSnapshot {
			layers, ends = append(layers, f.Evidence...), append(ends, f.Next...)
		}
	}
	return providers.Refuse(strings.Join(layers, "; "), ends)
}

// inJob refuses the steps that would end somebody else's long operation; nil: there is none.
func inJob(o *providers.Object) error {
	if o == nil {
		return nil
	}
	for _, f := range o.Findings {
		if f.Kind == providers.FindBusy {
			return providers.Refuse(strings.Join(f.Evidence, "; "), append(providers.Say("wait until it has ended"), f.Next...))
		}
	}
	return nil
}

// jobless fails if somebody has begun a long operation since the plan was made.
func (j *job) jobless() error {
	if j.seen == nil || j.seen.job == "" {
		return nil
	}
	return busyWith(j.Work, j.seen.underWay(), j.seen.endJob(j.location.URI))
}

// busyWith is the failure of a step that would end somebody else's long operation.
func busyWith(w providers.Work, underWay, end string) error {
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "in_job", Seen: []string{underWay},
		Next: providers.Say("wait until it has ended", "or end it: "+end),
		Err:  fmt.Errorf("%s %s: %s", w.Op, w.Address, underWay),
	}
}

// unlayered fails if others made layers since the plan was made.
func (j *job) unlayered() error {
	if j.seen == nil {
		return nil
	}
	if all := j.seen.layers(j.location.URI, j.sameFiles()); len(all) > 0 {
		return inLayers(j.Work, all)
	}
	return nil
}

// inLayers returns the failure of a step that would touch layers.
func inLayers(w providers.Work, all []layer) error {
	f := &providers.Problem{Outcome: providers.Unsafe, Code: "snapshots"}
	for _, l := range all {
		f.Seen, f.Next = append(f.Seen, l.what), append(f.Next, providers.Say(l.end)...)
	}
	f.Err = fmt.Errorf("%s %s: %s", w.Op, w.Address, strings.Join(f.Seen, "; "))
	return f
}

// observeLayers reads the snapshots and checkpoints of a domain, if it has some.
func (s *observedDomain) observeLayers(ctx context.Context, c connection) (err error) {
	if s.HasSnapshots {
		if s.snapshots, err = c.Snapshots(ctx, s.UUID); err != nil {
			return fmt.Errorf("list its snapshots: %w", err)
		}
	}
	if s.HasCheckpoints {
		if s.checkpoints, err = c.Checkpoints(ctx, s.UUID); err != nil {
			return fmt.Errorf("list its checkpoints: %w", err)
		}
	}
	return nil
}
