package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"libvirt.org/go/libvirtxml"

	"vmctl/providers"
)

// The name and the folder of the pool that vmctl makes on a system connection without a pool
// default.
const (
	systemPool     = "vmctl"
	systemPoolPath = "/var/lib/libvirt/vmctl"
	defaultPool    = "default"
)

// ownPool returns the name and the folder of the pool that vmctl makes here.
func (p *Provider) ownPool() (name, folder string) {
	if p.location.System {
		return systemPool, systemPoolPath
	}
	return "vmctl-" + p.settings.Project.Name + "-" + p.settings.Project.Lineage(), filepath.Join(p.settings.Dir, "pool")
}

// usablePool returns the active pool for new files. It makes vmctl's own pool if that is
// needed; it never starts or changes another pool.
func (j *job) usablePool(ctx context.Context, forWhat string) (pool, error) {
	found, err := j.findPool(ctx)
	if err != nil {
		return pool{}, asFailure(err, "find a pool for "+forWhat)
	}
	return found, nil
}

func (j *job) findPool(ctx context.Context) (pool, error) {
	if j.pool != "" {
		return j.theirPool(ctx, j.pool)
	}
	if j.location.System {
		if d, err := j.theirPool(ctx, defaultPool); err == nil {
			return d, nil
		}
	}
	name, _ := j.ownPool()
	found, err := j.Pool(ctx, name)
	if errors.Is(err, errAbsent) {
		// Another vmctl may have made it in between: reading decides.
		made := j.makePool(ctx)
		if found, err = j.Pool(ctx, name); err != nil {
			err = errors.Join(made, err)
		}
	}
	if err != nil || found.Active {
		return found, err
	}
	started := j.StartPool(ctx, name)
	if found, err = j.Pool(ctx, name); err == nil && found.Active {
		return found, nil
	}
	return pool{}, errors.Join(started, err)
}

// QEMU's user must be able to pass through the folder of a system pool; only the user may
// enter the folder of a user's pool.
const (
	systemPoolMode  = "0711"
	sessionPoolMode = "0700"
)

// makePool makes vmctl's own pool.
func (j *job) makePool(ctx context.Context) error {
	name, folder := j.ownPool()
	mode := sessionPoolMode
	if j.location.System {
		mode = systemPoolMode
	}
	x := libvirtxml.StoragePool{Type: "dir", Name: name, Target: &libvirtxml.StoragePoolTarget{
		Path: folder, Permissions: &libvirtxml.StoragePoolTargetPermissions{Mode: mode},
	}}
	text, err := x.Marshal()
	if err != nil {
		return err
	}
	return j.DefinePool(ctx, text)
}

// theirPool returns a pool of the user's. It fails if the pool cannot be used.
func (j *job) theirPool(ctx context.Context, name string) (pool, error) {
	found, err := j.Pool(ctx, name)
	var f *providers.Problem
	switch {
	case errors.Is(err, errAbsent):
		f = fail(err, "find pool %q", name)
		f.Code, f.Next = "no_pool", providers.Say("see what there is: virsh -c "+j.location.URI+" pool-list --all")
	case err != nil:
		return pool{}, err
	case !found.ofFiles():
		f = fail(fmt.Errorf("it is of type %q, and vmctl needs one of files: dir, fs or netfs", found.Type), "use pool %q", name)
		f.Code, f.Next = "no_pool", providers.Say("leave pool out of the provider's block: vmctl makes one")
	case !found.Active:
		f = fail(errors.New("it is not active"), "use pool %q", name)
		f.Code, f.Next = "no_pool", providers.Say("start it: virsh -c "+j.location.URI+" pool-start "+name)
	default:
		return found, nil
	}
	return pool{}, f
}

// ours reports whether vmctl made a pool.
func (p *Provider) ours(found pool) bool {
	name, folder := p.ownPool()
	if p.location.System {
		return found.Name == name && found.Path == folder
	}
	return found.Name == name
}

func parsePool(text string) (pool, error) {
	var x libvirtxml.StoragePool
	if err := x.Unmarshal(text); err != nil {
		return pool{}, fmt.Errorf("read the pool's description: %w", err)
	}
	p := pool{Name: x.Name, Type: x.Type}
	if x.Target != nil {
		p.Path = x.Target.Path
	}
	if s := x.Available; s != nil {
		p.Available = bytesOf(s.Value, s.Unit, "bytes")
	}
	return p, nil
}

// candidatePools returns the pools that may hold an object's files: first the block's own,
// and then those that vmctl chooses if a block names none.
func (p *Provider) candidatePools() []string {
	own, _ := p.ownPool()
	var all []string
	if p.pool != "" {
		all = append(all, p.pool)
	}
	if p.location.System && p.pool != defaultPool {
		all = append(all, defaultPool)
	}
	if p.pool != own {
		all = append(all, own)
	}
	return all
}

// rank compares two names. The names in first come before all others.
func rank(first []string, a, b string) int {
	place := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

// activePools lists the active pools: vmctl's own first. asleep names the pools that may hold
// an object's files and are not active. A step starts a pool of vmctl's own that a reboot left
// inactive; Observe does not.
func (p *Provider) activePools(ctx context.Context, c connection) (pools []pool, asleep, err error) {
	if pools, err = c.Pools(ctx); err != nil {
		return nil, nil, fmt.Errorf("list the pools of %s: %w", p.location.URI, err)
	}
	pools = slices.DeleteFunc(pools, func(found pool) bool { return !found.Active })
	first := p.candidatePools()
	for _, name := range first {
		if slices.ContainsFunc(pools, func(found pool) bool { return found.Name == name }) {
			continue
		}
		woken, err := p.wakePool(ctx, c, name)
		asleep = errors.Join(asleep, err)
		pools = append(pools, woken...)
	}
	slices.SortFunc(pools, func(a, b pool) int { return rank(first, a.Name, b.Name) })
	return pools, asleep, nil
}

// wakePool returns a pool that may hold disks. It starts an inactive pool if that is vmctl's
// own and c may change the system. A missing pool holds no disks, unless the block names it:
// then wakePool fails.
func (p *Provider) wakePool(ctx context.Context, c connection, name string) ([]pool, error) {
	found, err := c.Pool(ctx, name)
	switch {
	case errors.Is(err, errAbsent) && name == p.pool:
		return nil, &providers.Problem{
			Outcome: providers.Failed, Code: "no_pool", Next: providers.Say("see what there is: virsh -c " + p.location.URI + " pool-list --all"),
			Err: fmt.Errorf("pool %s, which the provider's block names, does not exist", name),
		}
	case errors.Is(err, errAbsent), err == nil && p.emptied(found):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read pool %s: %w", name, err)
	case found.Active:
		return []pool{found}, nil
	}
	looks, isLooking := c.(*readOnly)
	if isLooking && p.canRead(looks, found) {
		return []pool{found}, nil
	}
	if p.ours(found) && !isLooking {
		err = c.StartPool(ctx, name)
		if now, lookErr := c.Pool(ctx, name); lookErr == nil && now.Active { // another vmctl may have been faster
			return []pool{now}, nil
		}
	}
	return nil, errors.Join(err, p.inactive(name))
}

// inactive returns the failure to read an inactive pool.
func (p *Provider) inactive(name string) *providers.Problem {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "no_pool", Next: providers.Say(fmt.Sprintf("start it: virsh -c %s pool-start %s", p.location.URI, name)),
		Err: fmt.Errorf("pool %s is not active", name),
	}
}

// emptied reports whether the folder of vmctl's own pool is gone, with all its files.
func (p *Provider) emptied(found pool) bool {
	return p.ours(found) && p.isGone(found.Path)
}

// left reports whether somebody else's pool went away during the listing.
func (p *Provider) left(ctx context.Context, c connection, found pool) bool {
	if slices.Contains(p.candidatePools(), found.Name) {
		return false
	}
	now, err := c.Pool(ctx, found.Name)
	return errors.Is(err, errAbsent) || err == nil && !now.Active
}

// removeEmptyPool removes a pool of vmctl's own if it is empty, and says so.
func (j *job) removeEmptyPool(ctx context.Context, in pool) (evidence []string, err error) {
	if !j.ours(in) {
		return nil, nil
	}
	left, err := j.Volumes(ctx, in.Name)
	switch {
	case errors.Is(err, errAbsent):
	case err != nil || len(left) > 0:
		return nil, err
	default:
		if err := j.RemovePool(ctx, in.Name); err != nil && !errors.Is(err, errAbsent) {
			return nil, fmt.Errorf("remove the empty pool %s: %w", in.Name, err)
		}
	}
	return []string{"removed the empty pool " + in.Name}, nil
}

// ofFiles reports whether the volumes of a pool are files.
func (p pool) ofFiles() bool { return slices.Contains([]string{"dir", "fs", "netfs"}, p.Type) }
