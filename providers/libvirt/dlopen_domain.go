//go:build cgo && libvirt_dlopen

package libvirt

import (
	"context"
	"errors"
	"slices"
	"time"

	"libvirt.org/go/libvirt"
)

// Domains lists all domains in one call, and finds the special ones afterwards: with one call
// for running domains and another for the others, a domain that starts or stops in between
// would be in neither.
func (c *conn) Domains(ctx context.Context) ([]domainRef, error) {
	all, err := c.list(ctx, 0)
	if err != nil {
		return nil, err
	}
	place := map[string]int{}
	for i, ref := range all {
		place[ref.UUID] = i
	}
	having := func(flags libvirt.ConnectListAllDomainsFlags, set func(*domainRef)) {
		some, listErr := c.list(ctx, flags)
		err = errors.Join(err, listErr)
		for _, ref := range some {
			if i, listed := place[ref.UUID]; listed {
				set(&all[i])
			}
		}
	}
	having(libvirt.CONNECT_LIST_DOMAINS_TRANSIENT, func(r *domainRef) { r.Transient = true })
	having(libvirt.CONNECT_LIST_DOMAINS_MANAGEDSAVE, func(r *domainRef) { r.Saved = true })
	having(libvirt.CONNECT_LIST_DOMAINS_HAS_SNAPSHOT, func(r *domainRef) { r.HasSnapshots = true })
	having(libvirt.CONNECT_LIST_DOMAINS_HAS_CHECKPOINT, func(r *domainRef) { r.HasCheckpoints = true })
	return all, err
}

// Snapshots lists the snapshots of a domain, those first that have files of their own.
func (c *conn) Snapshots(ctx context.Context, uuid string) ([]snapshot, error) {
	return on(ctx, c, uuid, "list the snapshots of a domain", func(d *libvirt.Domain) ([]snapshot, error) {
		var all []snapshot
		for _, flags := range []libvirt.DomainSnapshotListFlags{libvirt.DOMAIN_SNAPSHOT_LIST_EXTERNAL, 0} {
			found, err := d.ListAllSnapshots(flags)
			if err != nil {
				return nil, err
			}
			names, err := namesOf(found, func(s *libvirt.DomainSnapshot) (string, error) { return s.GetName() })
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				if !slices.ContainsFunc(all, func(s snapshot) bool { return s.Name == name }) {
					all = append(all, snapshot{Name: name, External: flags != 0})
				}
			}
		}
		return all, nil
	})
}

func (c *conn) Checkpoints(ctx context.Context, uuid string) ([]string, error) {
	return on(ctx, c, uuid, "list the checkpoints of a domain", func(d *libvirt.Domain) ([]string, error) {
		found, err := d.ListAllCheckpoints(0)
		if err != nil {
			return nil, err
		}
		return namesOf(found, func(c *libvirt.DomainCheckpoint) (string, error) { return c.GetName() })
	})
}

// namesOf returns the names of the listed objects, sorted, and frees the objects.
func namesOf[T any, P interface {
	*T
	Free() error
}](found []T, name func(P) (string, error)) ([]string, error) {
	var all []string
	var errs []error
	for i := range found {
		text, err := name(&found[i])
		all, errs = append(all, text), append(errs, err)
		free(P(&found[i]))
	}
	slices.Sort(all)
	return all, errors.Join(errs...)
}

func (c *conn) list(ctx context.Context, flags libvirt.ConnectListAllDomainsFlags) ([]domainRef, error) {
	return ask(ctx, c, "list domains", func(_ context.Context) ([]domainRef, error) {
		domains, err := c.c.ListAllDomains(flags)
		if flags == libvirt.CONNECT_LIST_DOMAINS_HAS_CHECKPOINT && (errors.Is(err, libvirt.ERR_NO_SUPPORT) || errors.Is(err, libvirt.ERR_INVALID_ARG)) {
			return nil, nil // a daemon before 5.6 has none
		}
		if err != nil {
			return nil, err
		}
		var refs []domainRef
		for i := range domains {
			ref, err := refOf(&domains[i])
			if err != nil {
				return nil, err
			}
			refs = append(refs, ref)
			keep(c.handles, c.domains, ref.UUID, &domains[i])
		}
		return refs, nil
	})
}

func refOf(d *libvirt.Domain) (ref domainRef, err error) {
	if ref.Name, err = d.GetName(); err != nil {
		return ref, err
	}
	ref.UUID, err = d.GetUUIDString()
	return ref, err
}

func (c *conn) Domain(ctx context.Context, uuid string) (domainRef, error) {
	return c.lookup(ctx, func() (*libvirt.Domain, error) { return c.c.LookupDomainByUUIDString(uuid) })
}

func (c *conn) DomainNamed(ctx context.Context, name string) (domainRef, error) {
	return c.lookup(ctx, func() (*libvirt.Domain, error) { return c.c.LookupDomainByName(name) })
}

func (c *conn) lookup(ctx context.Context, find func() (*libvirt.Domain, error)) (domainRef, error) {
	return ask(ctx, c, "look up a domain", func(_ context.Context) (ref domainRef, err error) {
		d, err := find()
		if err != nil {
			return ref, err
		}
		defer free(d)
		if ref, err = refOf(d); err != nil {
			return ref, err
		}
		persistent, err := d.IsPersistent()
		if err != nil {
			return ref, err
		}
		ref.Transient = !persistent
		if ref.Saved, err = d.HasManagedSaveImage(0); err != nil {
			return ref, err
		}
		snapshots, err := d.SnapshotNum(0)
		if err != nil {
			return ref, err
		}
		checkpoints, err := d.ListAllCheckpoints(0)
		if errors.Is(err, libvirt.ERR_NO_SUPPORT) {
			err = nil
		}
		for i := range checkpoints {
			free(&checkpoints[i])
		}
		ref.HasSnapshots, ref.HasCheckpoints = snapshots > 0, len(checkpoints) > 0
		return ref, err
	})
}

// on asks about a domain.
func on[T any](ctx context.Context, c *conn, uuid, doing string, f func(*libvirt.Domain) (T, error)) (T, error) {
	return ask(ctx, c, doing, func(_ context.Context) (none T, err error) {
		d, err := c.domain(uuid, c.c.LookupDomainByUUIDString)
		if err != nil {
			return none, err
		}
		return f(d)
	})
}

// act changes a domain.
func (c *conn) act(ctx context.Context, uuid, doing string, f func(*libvirt.Domain) error) error {
	return change(ctx, c, doing, func() error {
		d, err := c.domain(uuid, c.c.LookupDomainByUUIDString)
		if err != nil {
			return err
		}
		return f(d)
	})
}

func (c *conn) XML(ctx context.Context, uuid string, of version) (string, error) {
	var flags libvirt.DomainXMLFlags
	switch of {
	case asConfigured:
		flags = libvirt.DOMAIN_XML_INACTIVE
	case toDefine:
		flags = libvirt.DOMAIN_XML_INACTIVE | libvirt.DOMAIN_XML_SECURE
	case asRunning:
	}
	return on(ctx, c, uuid, "read a domain", func(d *libvirt.Domain) (string, error) { return d.GetXMLDesc(flags) })
}

func (c *conn) Power(ctx context.Context, uuid string) (power, error) {
	return on(ctx, c, uuid, "read a domain's run state", func(d *libvirt.Domain) (power, error) {
		state, reason, err := d.GetState()
		if err != nil {
			return power{}, err
		}
		return powerOf(int(state), reason), nil
	})
}

func (c *conn) Ran(ctx context.Context, uuid string) (time.Duration, error) {
	return on(ctx, c, uuid, "read a domain's processor time", func(d *libvirt.Domain) (time.Duration, error) {
		info, err := d.GetInfo()
		if err != nil {
			return 0, err
		}
		return time.Duration(info.CpuTime), nil //nolint:gosec // nanoseconds; no domain runs for 292 years
	})
}

func (c *conn) Job(ctx context.Context, uuid string) (string, error) {
	return on(ctx, c, uuid, "read a domain's job", func(d *libvirt.Domain) (string, error) {
		info, err := d.GetJobStats(0)
		switch {
		case errors.Is(err, libvirt.ERR_NO_SUPPORT):
			return "", nil
		case errors.Is(err, libvirt.ERR_OPERATION_INVALID): // it may have stopped since
			if on, activeErr := d.IsActive(); activeErr == nil && !on {
				return "", nil
			}
			return "", err
		case err != nil:
			return "", err
		case info.Type == libvirt.DOMAIN_JOB_NONE:
			return "", nil
		}
		return jobName(int(info.Operation)), nil
	})
}

func (c *conn) Define(ctx context.Context, xml string) error {
	return change(ctx, c, "define a domain", func() error {
		d, err := c.c.DomainDefineXML(xml)
		if err != nil {
			return err
		}
		return d.Free()
	})
}

func (c *conn) Undefine(ctx context.Context, uuid string) error {
	const all = libvirt.DOMAIN_UNDEFINE_MANAGED_SAVE | libvirt.DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
	const newer = libvirt.DOMAIN_UNDEFINE_CHECKPOINTS_METADATA | libvirt.DOMAIN_UNDEFINE_NVRAM
	return c.act(ctx, uuid, "undefine a domain", func(d *libvirt.Domain) error {
		err := d.UndefineFlags(all | newer)
		if errors.Is(err, libvirt.ERR_INVALID_ARG) { // a daemon that does not know the newer flags keeps nothing for them
			return d.UndefineFlags(all)
		}
		return err
	})
}

func (c *conn) Unmark(ctx context.Context, uuid string) error {
	return c.act(ctx, uuid, "take the mark off a domain", func(d *libvirt.Domain) error {
		var where libvirt.DomainModificationImpact
		if on, err := d.IsActive(); err != nil {
			return err
		} else if on {
			where |= libvirt.DOMAIN_AFFECT_LIVE
		}
		if persistent, err := d.IsPersistent(); err != nil {
			return err
		} else if persistent {
			where |= libvirt.DOMAIN_AFFECT_CONFIG
		}
		return d.SetMetadata(libvirt.DOMAIN_METADATA_ELEMENT, "", "", ownerSpace, where)
	})
}

func (c *conn) Start(ctx context.Context, uuid string) error {
	return c.act(ctx, uuid, "start a domain", (*libvirt.Domain).Create)
}

func (c *conn) Resume(ctx context.Context, uuid string) error {
	return c.act(ctx, uuid, "resume a domain", (*libvirt.Domain).Resume)
}

func (c *conn) Wake(ctx context.Context, uuid string) error {
	return c.act(ctx, uuid, "wake a domain", func(d *libvirt.Domain) error { return d.PMWakeup(0) })
}

func (c *conn) Shutdown(ctx context.Context, uuid string) error {
	return c.act(ctx, uuid, "ask a domain to shut down", (*libvirt.Domain).Shutdown)
}

func (c *conn) Destroy(ctx context.Context, uuid string) error {
	return c.act(ctx, uuid, "force a domain off", (*libvirt.Domain).Destroy)
}

func (c *conn) Monitor(ctx context.Context, uuid, command string) (string, error) {
	return on(ctx, c, uuid, "ask QEMU's monitor", func(d *libvirt.Domain) (string, error) {
		return d.QemuMonitorCommand(command, libvirt.DOMAIN_QEMU_MONITOR_COMMAND_HMP)
	})
}

func (c *conn) ChangeMedia(ctx context.Context, uuid, xml string) error {
	const now = libvirt.DOMAIN_DEVICE_MODIFY_LIVE | libvirt.DOMAIN_DEVICE_MODIFY_FORCE
	return c.act(ctx, uuid, "change a CD-ROM", func(d *libvirt.Domain) error { return d.UpdateDeviceFlags(xml, now) })
}

func (c *conn) AttachDisk(ctx context.Context, uuid, xml string) error {
	const now = libvirt.DOMAIN_DEVICE_MODIFY_LIVE | libvirt.DOMAIN_DEVICE_MODIFY_CONFIG
	return c.act(ctx, uuid, "attach a disk", func(d *libvirt.Domain) error { return d.AttachDeviceFlags(xml, now) })
}

func (c *conn) ResizeDisk(ctx context.Context, uuid, path string, size uint64) error {
	return c.act(ctx, uuid, "resize a disk", func(d *libvirt.Domain) error {
		return d.BlockResize(path, size, libvirt.DOMAIN_BLOCK_RESIZE_BYTES)
	})
}
