package libvirt_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/spec"
)

// diskRun is a run of steps on disks, between which others change the pool.
type diskRun struct {
	*lab
	made map[int]providers.Object // as the last step of this run left them
}

func diskNamed(i int) (spec.Address, providers.ID, string) {
	return spec.Address{Kind: spec.Disk, Name: fmt.Sprintf("d%d", i)}, providers.ID(fmt.Sprintf("%08d-2222-8333-8444-555555555555", i)), fmt.Sprintf("lab.d%d.qcow2", i)
}

// step makes a disk, or grows it to a number of MiB, as a plan from the beginning of the run would.
func (r diskRun) step(i int, size int64) string {
	r.t.Helper()
	address, id, volume := diskNamed(i)
	c := providers.Change{
		Address: address, Kind: spec.Disk, Action: providers.Create, Name: strings.TrimSuffix(volume, ".qcow2"), ID: id,
		Want: disk(size*mib, "qcow2"), Policy: policy(nil), Generation: 1,
	}
	if o, made := r.made[i]; made {
		c.Action, c.Object, c.Edits = providers.Update, &o, []providers.Edit{{Path: "size"}}
	}
	got := r.apply(c)
	delete(r.made, i)
	for _, o := range r.see().Objects {
		if o.ID == id {
			r.made[i] = o
		}
	}
	return got
}

// hands are the changes that others make.
var hands = map[string]func(l *lab, volume string){
	"make the volume": func(l *lab, volume string) {
		l.PutVolume(poolName, libvirt.FakeVolume{Name: volume, Format: "qcow2", Capacity: 4 * mib})
	},
	"delete the volume": func(l *lab, volume string) { l.DropVolume(poolName, volume) },
	"delete the mark":   func(l *lab, volume string) { l.DropVolume(poolName, volume+".vmctl") },
	"empty the mark":    func(l *lab, volume string) { l.PutFile(poolName, volume+".vmctl", make([]byte, 4096)) },
	"spoil the mark":    func(l *lab, volume string) { l.PutFile(poolName, volume+".vmctl", []byte("{")) },
	"mark it for another project": func(l *lab, volume string) {
		l.PutFile(poolName, volume+".vmctl", fmt.Appendf(nil, `{"id":"other","project":"o","address":"disk.x","of":%q,"volume":%q}`, otherID, volume))
	},
	"mark it for another data directory": func(l *lab, volume string) {
		name, _, _ := strings.Cut(strings.TrimPrefix(volume, "lab."), ".")
		l.PutFile(poolName, volume+".vmctl", fmt.Appendf(nil, `{"id":%q,"project":"lab","address":%q,"of":%q,"volume":%q,"seat":"two"}`, lineage, "disk."+name, otherID, volume))
	},
	"stop the pool":   func(l *lab, _ string) { l.StopPool(poolName) },
	"delete the pool": func(l *lab, _ string) { l.DropPool(poolName) },
}

// A step that begins with the listing of the one before it does the same as one that lists the
// pools anew, whatever others do in between.
func TestStepsOnAKnownListing(t *testing.T) {
	pool := libvirt.FakePool{Type: "dir", Active: true}
	rapid.Check(t, func(rt *rapid.T) {
		start := func() diskRun {
			l := newLab(t)
			pool.Path = l.settings.Dir + "/pool"
			l.file("data/libvirt/pool/kept", "")
			l.PutPool(poolName, pool)
			return diskRun{lab: l, made: map[int]providers.Object{}}
		}
		known, anew := start(), start()
		for range rapid.IntRange(2, 12).Draw(rt, "moves") {
			i := rapid.IntRange(0, 1).Draw(rt, "disk")
			_, _, volume := diskNamed(i)
			if hand := rapid.SampledFrom(append([]string{"", "", ""}, sortedHands()...)).Draw(rt, "hand"); hand != "" && strings.Contains(known.Contents(), poolName) {
				hands[hand](known.lab, volume)
				hands[hand](anew.lab, volume)
				continue
			}
			size := rapid.Int64Range(8, 16).Draw(rt, "MiB")
			anew.open()
			want, got := anew.step(i, size), known.step(i, size)
			if diff := cmp.Diff(want+anew.state(), got+known.state()); diff != "" {
				rt.Fatalf("step on %s (-listed anew +known):\n%s", volume, diff)
			}
		}
	})
}

func sortedHands() []string { return slices.Sorted(maps.Keys(hands)) }

// state lists the volumes with their sizes and the contents of their marks.
func (r diskRun) state() string {
	r.t.Helper()
	text := r.Contents()
	if !strings.Contains(text, poolName) {
		return text
	}
	for _, name := range r.VolumesIn(poolName) {
		v, err := r.VolumeInfo(r.t.Context(), poolName, name)
		text += fmt.Sprintf("%s %d %v %s\n", name, v.Capacity, err, strings.TrimSpace(string(r.Volume(poolName, name))))
	}
	return text
}
