package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// grow makes a disk larger in its place, and tells the guest that runs with it.
func (d *diskJob) grow(ctx context.Context) (*guard.Outcome, error) {
	if err := d.enlarge(ctx); err != nil {
		return nil, err
	}
	if err := d.remark(ctx); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}

// isGrown reports whether the disk has the wanted size. It writes the mark, which may have been
// left to write.
func (d *diskJob) isGrown(ctx context.Context) (*guard.Outcome, error) {
	if d.disk == nil || d.disk.size() != d.store.Size {
		return nil, nil
	}
	if err := d.remark(ctx); err != nil {
		return nil, err
	}
	return guard.Did(providers.AlreadyTrue, fmt.Sprintf("it has %d bytes", d.store.Size)), nil
}

// enlarge gives the disk its wanted size, and checks the result.
func (d *diskJob) enlarge(ctx context.Context) error {
	if d.disk.size() > d.store.Size {
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "shrinks",
			Err: fmt.Errorf("grow %s: it has %d bytes, and %d are fewer: what is at its end would be cut off", d.Address, d.disk.size(), d.store.Size),
		}
	}
	users, err := d.users(ctx)
	if err != nil {
		return err
	}
	running := ""
	for _, u := range users {
		if len(u.layers) > 0 {
			return inLayers(d.Work, u.layers)
		}
		if u.job != "" {
			return busyWith(d.Work, u.job, u.endJob)
		}
		if !u.running {
			continue
		}
		if !u.ours {
			return d.inUse("grow", d.disk.Path, users)
		}
		running = u.uuid
	}
	if err := d.resize(ctx, d.at.poolFile, d.store.Size, running != "", running); err != nil {
		return d.locked(fail(err, "grow %s to %d bytes", d.Address, d.store.Size), d.disk.Path)
	}
	now, err := d.at.see(ctx, d.connection)
	if err != nil || now == nil {
		return fail(cmp.Or(err, errAbsent), "read %s after it was grown", d.Name)
	}
	if now.size() != d.store.Size {
		return fail(fmt.Errorf("it has %d bytes after it was grown", now.size()), "grow %s to %d bytes", d.Address, d.store.Size)
	}
	return nil
}

// mark writes the mark of this address to the volume, after a move or for an import.
func (d *diskJob) mark(ctx context.Context) (*guard.Outcome, error) {
	if err := d.remark(ctx); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}

// isMarked reports whether the disk bears the wanted mark.
func (d *diskJob) isMarked() bool {
	return d.disk != nil && d.disk.mark != nil && machine.IsMarked(d.Work, &d.disk.mark.Mark)
}

// remark writes the mark if it is not as wanted. From then on the disk's ID is the one in the
// mark.
func (d *diskJob) remark(ctx context.Context) error {
	of := d.disk.id()
	if d.disk.mark == nil {
		of = volumeID(d.settings.Project.Lineage(), d.disk.Path)
	}
	if d.isMarked() {
		return nil
	}
	doing := "write the mark of " + d.Name
	if err := d.putMark(ctx, d.at.pool, d.marked(of, d.disk.Name), doing); err != nil {
		return asFailure(err, doing)
	}
	d.Object = of
	return nil
}

// delete removes a disk that no domain has: first its volume, and then its mark. A disk that
// is gone may have left its mark.
func (d *diskJob) delete(ctx context.Context) (*guard.Outcome, error) {
	how := providers.AlreadyGone
	var evidence []string
	if d.disk != nil {
		if err := d.unused(ctx, d.listed, d.hidden, d.disk.Path); err != nil {
			return nil, err
		}
		if _, err := d.at.remove(ctx, d.connection); err != nil {
			return nil, d.locked(fail(err, "delete %s", d.Name), d.disk.Path)
		}
		if left, err := d.at.see(ctx, d.connection); err != nil || left != nil {
			return nil, fail(errors.Join(errors.New("it is still there"), err), "delete %s", d.Name)
		}
		how = providers.Done
		evidence = append(evidence, "removed volume "+d.disk.Path)
	}
	if d.at.pool != nil && d.at.pool.has(sidecarOf(d.at.name)) {
		if _, err := d.at.in.file(sidecarOf(d.at.name)).remove(ctx, d.connection); err != nil {
			return nil, fail(err, "remove the mark of %s, whose volume is deleted", d.Name)
		}
	}
	for _, s := range d.listed.pools {
		emptied, err := d.removeEmptyPool(ctx, s.pool)
		if err != nil {
			return nil, fail(err, "tidy up after %s, which is deleted", d.Name)
		}
		evidence = append(evidence, emptied...)
	}
	return guard.Did(how, evidence...), nil
}

// unused fails if somebody other than the step's own domain uses a file that is to be deleted,
// a disk or the domain's root disk: a domain, an overlay or a process. hidden is the reason why
// the listing is incomplete: an overlay may be in a pool that it lacks.
func (j *job) unused(ctx context.Context, all listing, hidden error, file string) error {
	what, words := j.Address.String(), "volume "+file
	if j.seen != nil {
		what, words = "the root disk of "+what, "its root disk "+file
	}
	doing := fmt.Sprintf("delete %s: see what begins from it", what)
	if hidden != nil {
		return fail(hidden, "%s", doing)
	}
	users, err := j.usersOf(ctx, all, file, doing)
	if err != nil {
		return err
	}
	if j.seen == nil && len(users) > 0 {
		return j.inUse("delete", file, users)
	}
	over, err := all.overlaysOf(ctx, j.connection, file)
	if err != nil {
		return fail(err, "%s", doing)
	}
	for _, u := range users {
		if u.uuid != j.seen.UUID {
			over = append(over, "domain "+u.name)
		}
	}
	if err := beginFromIt(j.Work, words, over); err != nil {
		return err
	}
	return j.notOpen("delete "+what, file)
}

// users returns the domains that have the disk.
func (d *diskJob) users(ctx context.Context) ([]user, error) {
	return d.usersOf(ctx, d.listed, d.disk.Path, "see who uses "+d.Name)
}

// usersOf returns the domains that have a file, or an overlay of it. It fails if no domain has it
// and one may have it, unless that is the step's own. A domain whose disks are on other files has it
// not, even if vmctl cannot read the rest of its description.
func (j *job) usersOf(ctx context.Context, all listing, file, doing string) ([]user, error) {
	refs, err := j.Domains(ctx)
	if err != nil {
		return nil, fail(err, "%s", doing)
	}
	found, doubtful, errs := make([]*observedDomain, len(refs)), make([]error, len(refs)), make([]error, len(refs))
	panics := parallel(len(refs), func(i int) { found[i], doubtful[i], errs[i] = j.userOf(ctx, all, refs[i], file) })
	var domains []observedDomain
	var doubts []doubt
	for i, ref := range refs {
		if err := cmp.Or(errs[i], panics[i]); err != nil {
			return nil, fail(err, "%s: read domain %s", doing, ref.Name)
		}
		if found[i] != nil {
			domains = append(domains, *found[i])
		}
		if doubtful[i] != nil && (j.seen == nil || ref.UUID != j.seen.UUID) {
			doubts = append(doubts, doubt{domain: ref, reason: doubtful[i]})
		}
	}
	if users := j.users(all, []string{file}, domains)[file]; len(users) > 0 {
		return users, nil
	}
	return nil, j.inDoubt(file, doubts)
}

// userOf reads a domain if it has a file; nil: it has it not, or the domain is gone. doubtful is the
// reason why it may have the file.
func (j *job) userOf(ctx context.Context, all listing, ref domainRef, file string) (found *observedDomain, doubtful, err error) {
	has := false
	for _, of := range []version{asConfigured, asRunning} {
		text, err := j.XML(ctx, ref.UUID, of)
		if errors.Is(err, errAbsent) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		same, may, err := all.isNamed(ctx, j.connection, text, file)
		if err != nil {
			return nil, nil, err
		}
		has, doubtful = has || same, cmp.Or(doubtful, may)
	}
	if !has {
		return nil, doubtful, nil
	}
	s, err := observeDomain(ctx, j.connection, ref)
	if errors.Is(err, errAbsent) {
		return nil, nil, nil
	}
	return &s, doubtful, err
}

// isNamed reports whether a domain's description names a volume. doubt is the reason why it may.
func (l listing) isNamed(ctx context.Context, c connection, text, volume string) (same bool, doubt, err error) {
	all, err := drivesNamed(text)
	if err != nil {
		return false, nil, err
	}
	for _, d := range all {
		file := l.pathOf(d)
		if file == "" && d.Volume == path.Base(volume) {
			doubt = cmp.Or(doubt, fmt.Errorf("volume %s of pool %s may be %s: the pool is not active", d.Volume, d.Pool, volume))
		}
		is, may := l.compare(ctx, c, volume, file)
		same, doubt = same || is, cmp.Or(doubt, may)
	}
	return same, doubt, nil
}

// doubt is the reason why a domain may have a volume.
type doubt struct {
	domain domainRef
	reason error
}

// inDoubt is the failure to change a volume that a domain may have; nil: there is none.
func (j *job) inDoubt(file string, all []doubt) error {
	if len(all) == 0 {
		return nil
	}
	first := all[0].domain
	f := &providers.Problem{
		Outcome: providers.Unsafe, Code: "disk_in_doubt",
		Next: providers.Say(
			"see its disks: virsh -c "+j.location.URI+" domblklist "+first.Name,
			"let it name the file by its own path, or detach the disk there",
		),
		Err: fmt.Errorf("%s %s: domain %s (%s) may have volume %s", j.Op, j.Address, first.Name, first.UUID, file),
	}
	for _, d := range all {
		f.Seen = append(f.Seen, fmt.Sprintf("domain %s: %v", d.domain.Name, d.reason))
	}
	return f
}

func (j *job) inUse(doing, file string, users []user) error {
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "disk_in_use", Seen: []string{names(users) + " has it"},
		Next: providers.Say("see its disks: virsh -c " + j.location.URI + " domblklist " + users[0].name),
		Err:  fmt.Errorf("%s %s: volume %s is used by %s", doing, j.Address, file, names(users)),
	}
}

// isLocked reports whether QEMU could not have a disk because somebody else has it.
func isLocked(message string) bool {
	return strings.Contains(message, "write\" lock") || strings.Contains(message, "write lock") ||
		strings.Contains(message, "shared \"write\"") || strings.Contains(message, "another process using the image")
}

// unmark removes the mark beside the volume, which stays as it is.
func (d *diskJob) unmark(ctx context.Context) (*guard.Outcome, error) {
	if _, err := d.at.in.file(sidecarOf(d.disk.Name)).remove(ctx, d.connection); err != nil {
		return nil, fail(err, "take the mark off %s", d.Name)
	}
	return &guard.Outcome{How: providers.Done, NotGone: true}, nil
}
