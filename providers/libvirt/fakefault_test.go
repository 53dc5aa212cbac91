package libvirt

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"libvirt.org/go/libvirtxml"

	"vmctl/providers"
)

// The kinds of faults that strike a fake daemon.
const (
	FaultFail = "fail" // the call fails and does nothing
	FaultLost = "lost" // the call takes effect, and its answer is lost
	FaultHalf = "half" // an upload ends in the middle
	FaultDie  = "die"  // the started domain ends at once
)

// Strike makes the next call of an operation fail, on a provider of TypeOfStruckFake.
func (f *Fake) Strike(op, kind string) { f.strikes = append(f.strikes, [2]string{op, kind}) }

// Calm removes all faults of Strike.
func (f *Fake) Calm() { f.strikes = nil }

// TypeOfStruckFake returns the provider's type on a fake daemon that fails as Strike says.
func TypeOfStruckFake(h Host, f func() *Fake) providers.Type {
	t := Type(h)
	t.Open = func(_ context.Context, s providers.Settings) (providers.Provider, error) {
		p, err := open(h, s, &common{})
		if err != nil {
			return nil, err
		}
		p.dial = func(context.Context, string) (connection, error) { return struck{f()}, nil }
		p.sleep = quickly
		return p, nil
	}
	return t
}

// struck is a fake daemon whose calls fail as Strike said.
type struck struct{ *Fake }

var _ connection = struck{}

var errLost = errors.New("end of file while reading data: Input/output error")

func (s struck) take(op string, kinds ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, strike := range s.strikes {
		if strike[0] == op && slices.Contains(kinds, strike[1]) {
			s.strikes = slices.Delete(s.strikes, i, i+1)
			return strike[1]
		}
	}
	return ""
}

func (s struck) call(op string, do func() error) error {
	kind := s.take(op, FaultFail, FaultLost)
	if kind == FaultFail {
		return ErrLibvirt("internal error: injected into " + op)
	}
	if err := do(); err != nil {
		return err
	}
	if kind == FaultLost {
		return errLost
	}
	return nil
}

func (s struck) Define(ctx context.Context, text string) error {
	return s.call("define", func() error { return s.Fake.Define(ctx, text) })
}

func (s struck) Undefine(ctx context.Context, uuid string) error {
	return s.call("undefine", func() error { return s.Fake.Undefine(ctx, uuid) })
}

func (s struck) Unmark(ctx context.Context, uuid string) error {
	return s.call("unmark", func() error { return s.Fake.Unmark(ctx, uuid) })
}

func (s struck) Start(ctx context.Context, uuid string) error {
	err := s.call("start", func() error { return s.Fake.Start(ctx, uuid) })
	if err == nil && s.take("start", FaultDie) != "" {
		s.End(uuid)
	}
	return err
}

func (s struck) Shutdown(ctx context.Context, uuid string) error {
	return s.call("shutdown", func() error { return s.Fake.Shutdown(ctx, uuid) })
}

func (s struck) Destroy(ctx context.Context, uuid string) error {
	return s.call("destroy", func() error { return s.Fake.Destroy(ctx, uuid) })
}

func (s struck) AttachDisk(ctx context.Context, uuid, text string) error {
	return s.call("attach", func() error { return s.Fake.AttachDisk(ctx, uuid, text) })
}

func (s struck) ResizeDisk(ctx context.Context, uuid, file string, size uint64) error {
	return s.call("resize", func() error { return s.Fake.ResizeDisk(ctx, uuid, file, size) })
}

func (s struck) ResizeVolume(ctx context.Context, pool, name string, size uint64) error {
	return s.call("resize", func() error { return s.Fake.ResizeVolume(ctx, pool, name, size) })
}

func (s struck) DefinePool(ctx context.Context, text string) error {
	return s.call("define-pool", func() error { return s.Fake.DefinePool(ctx, text) })
}

func (s struck) StartPool(ctx context.Context, name string) error {
	return s.call("start-pool", func() error { return s.Fake.StartPool(ctx, name) })
}

func (s struck) RemovePool(ctx context.Context, name string) error {
	return s.call("remove-pool", func() error { return s.Fake.RemovePool(ctx, name) })
}

func (s struck) DeleteVolume(ctx context.Context, pool, name string) error {
	return s.call("delete-volume", func() error { return s.Fake.DeleteVolume(ctx, pool, name) })
}

func (s struck) Overwrite(ctx context.Context, pool, name string, content []byte) error {
	return s.call("overwrite", func() error { return s.Fake.Overwrite(ctx, pool, name, content) })
}

func (s struck) MakeVolume(ctx context.Context, pool string, v volume) error {
	return s.call("make-volume", func() error { return s.Fake.MakeVolume(ctx, pool, v) })
}

// Upload may end in the middle together with the connection: the half-made volume stays.
func (s struck) Upload(ctx context.Context, pool string, u upload) error {
	half := s.take("upload", FaultHalf) != ""
	if half {
		u.Content = io.LimitReader(u.Content, int64(u.Size/2))
	}
	err := s.call("upload", func() error { return s.Fake.Upload(ctx, pool, u) })
	if half && err == nil {
		err = errLost
	}
	return err
}

func (s struck) Monitor(ctx context.Context, uuid, command string) (out string, err error) {
	err = s.call("monitor", func() error { out, err = s.Fake.Monitor(ctx, uuid, command); return err })
	return out, err
}

// UUIDs lists the UUIDs of all domains that have a configuration, sorted.
func (f *Fake) UUIDs() []string {
	refs, err := f.Domains(context.Background())
	if err != nil {
		return nil
	}
	var all []string
	for _, ref := range refs {
		if !ref.Transient {
			all = append(all, ref.UUID)
		}
	}
	return all
}

// Vanish ends and undefines a domain behind vmctl's back, or lets it run on without its
// configuration.
func (f *Fake) Vanish(uuid string, runOn bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.domains[uuid].Power.on() && !runOn {
		f.off(uuid, FakeOff)
	}
	f.undefine(uuid)
}

// Rename gives a domain that is off another name, unless another domain has it.
func (f *Fake) Rename(uuid, name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.domains[uuid]
	if d.Power.on() || f.fits(name, "") != nil {
		return false
	}
	d.Configured = strings.Replace(d.Configured, "<name>"+d.Name+"</name>", "<name>"+name+"</name>", 1)
	d.Name = name
	return true
}

// Edit changes the configuration of a domain, as virsh edit does.
func (f *Fake) Edit(uuid string, edit func(*libvirtxml.Domain)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.domains[uuid]
	var x libvirtxml.Domain
	if err := x.Unmarshal(d.Configured); err != nil {
		return err
	}
	edit(&x)
	text, err := x.Marshal()
	d.Configured = text
	return err
}

// VolumesIn lists the volumes of a pool, nil if there is none.
func (f *Fake) VolumesIn(pool string) []string {
	all, err := f.Volumes(context.Background(), pool)
	if err != nil {
		return nil
	}
	return all
}

// Grow makes a disk larger behind vmctl's back.
func (f *Fake) Grow(pool, name string, size uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.pools[pool].Disks[name]
	if !ok || f.usedBy(path.Join(f.pools[pool].Path, name)) != "" {
		return false
	}
	v.Capacity = size
	f.pools[pool].Disks[name] = v
	return true
}

// asked lists the host ports that domains hold or would ask for.
func (f *Fake) asked() map[uint16]bool {
	ports := map[uint16]bool{}
	for _, d := range f.domains {
		for _, text := range []string{d.Configured, d.Running} {
			if desc, err := describe(text); err == nil && desc.SSH != nil {
				ports[desc.SSH.Host] = true
			}
		}
		for _, h := range d.Held {
			ports[h.Host] = true
		}
	}
	return ports
}

func quickly(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// NameOf returns the name of a domain.
func (f *Fake) NameOf(uuid string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.domains[uuid].Name
}
