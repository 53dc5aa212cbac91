package libvirt

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"libvirt.org/go/libvirtxml"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// Fake is a libvirt daemon in memory, with guests that behave as they are told.
type Fake struct {
	mu       sync.Mutex
	domains  map[string]*FakeDomain
	pools    map[string]*FakePool
	networks map[string]*FakeNetwork
	nextID   uint16
	Calls    []string // that changed something, in order

	Sleeping   func()           // is called where time would pass
	Down       error            // the daemon does not answer
	Unreadable map[string]error // by domain name
	Panics     string           // the name of the domain whose description cannot be asked for without a panic
	Refuses    map[string]error // by operation: define, start, upload …
	Taken      []uint16         // host ports that others hold
	Closed     int              // how often its connection was closed
	NoKVM      bool
	NoQEMU     bool
	Node       providers.Capacity
	KVMBreaks  string            // "start": QEMU ends at once; "pause": the guest is paused; "power off": it powers itself off
	Deaf       bool              // guests ignore a request to shut down
	Stuck      bool              // QEMU does not end when it is forced
	SSH        map[string]uint16 // by domain name: the host port that leads to its SSH
	// SSHAfterTCG is the port of a guest that was started on TCG; 0: no other.
	SSHAfterTCG uint16
	BootLog     string
	// Define calls BeforeDefine first, unless it is nil.
	BeforeDefine func()
	// Upload, MakeVolume and DeleteVolume call BeforeStore first, unless it is nil.
	BeforeStore func(name string)
	// Booting returns the host port that leads to the SSH of a domain that starts; nil: SSH
	// has it. Ended is called when a domain has gone off.
	Booting func(name, uuid string) uint16
	Ended   func(name string)
	// Answering is like Booting. It also gets the requested host port (0: any), and the ports
	// that domains hold or would ask for.
	Answering func(uuid string, asked uint16, taken map[uint16]bool) uint16
	Free      uint64 // bytes in every pool
	Leaving   string // a pool that is listed as active, but is not any more
	Ticking   bool   // somebody writes to every disk between two readings of it
	// FreeAfterUpload is the free space after a refused upload (bytes); 0: unchanged.
	FreeAfterUpload uint64

	// Asked counts the calls that only ask, by operation, and the listings of pools as refresh.
	Asked map[string]int

	strikes [][2]string  // operation and kind
	slept   atomic.Int64 // nanoseconds
}

func (f *Fake) now() time.Time { return time.Unix(0, f.slept.Load()) }

// FakeDomain is one domain.
type FakeDomain struct {
	Name, Configured, Running string // XML; Running is "" when off
	Power                     power
	Transient, Saved          bool
	Snapshots                 []snapshot
	Checkpoints               []string
	Held                      []machine.Forward
	Job                       string
}

// FakePool is one pool.
type FakePool struct {
	Type, Path string
	Active     bool
	free       uint64 // bytes, when it was last listed
	Volumes    map[string][]byte
	Disks      map[string]FakeVolume // the volumes of Volumes that have more properties than their bytes
}

// FakeVolume is a volume that holds a disk.
type FakeVolume = volume

// NewFake returns a host without domains and pools.
func NewFake() *Fake {
	return &Fake{
		domains: map[string]*FakeDomain{}, pools: map[string]*FakePool{}, networks: map[string]*FakeNetwork{}, nextID: 40000,
		Asked:      map[string]int{},
		Unreadable: map[string]error{}, Refuses: map[string]error{}, SSH: map[string]uint16{}, Free: 1 << 40,
	}
}

// TypeOfFake returns the provider's type on a fake daemon.
func TypeOfFake(h Host, f *Fake) providers.Type {
	t := Type(h)
	t.Open = func(_ context.Context, s providers.Settings) (providers.Provider, error) { return OpenFake(h, s, f) }
	return t
}

// OpenFake opens a provider on a fake daemon. It never really waits: its clock advances by
// each wait.
func OpenFake(h Host, s providers.Settings, f *Fake) (*Provider, error) {
	s.Now = f.now
	p, err := open(h, s, &common{})
	if err != nil {
		return nil, err
	}
	p.dial = func(context.Context, string) (connection, error) {
		if f.Down != nil {
			return nil, f.Down
		}
		return f, nil
	}
	p.sleep = func(ctx context.Context, d time.Duration) error {
		f.slept.Add(int64(d))
		if f.Sleeping != nil {
			f.Sleeping()
		}
		return ctx.Err()
	}
	return p, nil
}

// The states that a test can put a domain into.
var (
	FakeOff      = powerOf(5, 2)
	FakeCrashed  = powerOf(5, 3)
	FakePaused   = powerOf(3, 1)
	FakeBroken   = powerOf(3, 5)
	FakeSaving   = powerOf(3, 3)
	FakeStarting = powerOf(3, 11)
	FakeRunning  = powerOf(1, 1)
	FakeEnding   = powerOf(4, 1)
	FakeAsleep   = powerOf(7, 0)

	FakeInternalError = powerOf(3, 0)
)

// ErrLibvirt returns an error as libvirt reports it.
func ErrLibvirt(message string) error { return &libvirtError{Code: codeInternal, Message: message} }

var _ connection = (*Fake)(nil)

// Put adds or changes a domain behind vmctl's back.
func (f *Fake) Put(uuid string, edit func(*FakeDomain)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, ok := f.domains[uuid]
	if !ok {
		d = &FakeDomain{Power: FakeOff}
		f.domains[uuid] = d
	}
	edit(d)
}

// End ends a running domain by itself, as a crash does.
func (f *Fake) End(uuid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.off(uuid, FakeCrashed)
}

// Copy defines a domain that is another's copy.
func (f *Fake) Copy(of, uuid, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := f.domains[of]
	text := strings.ReplaceAll(from.Configured, "<uuid>"+of, "<uuid>"+uuid)
	text = strings.ReplaceAll(text, "<name>"+from.Name+"<", "<name>"+name+"<")
	f.domains[uuid] = &FakeDomain{Name: name, Configured: text, Power: FakeOff}
}

// Shown lists every domain with its run state and its XML.
func (f *Fake) Shown() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := []string{}
	for _, uuid := range slices.Sorted(maps.Keys(f.domains)) {
		d := f.domains[uuid]
		all = append(all, fmt.Sprintf("domain %s: %+v", uuid, *d))
	}
	return all
}

// Drop removes a domain behind vmctl's back.
func (f *Fake) Drop(uuid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.domains, uuid)
}

// PutPool adds a pool.
func (f *Fake) PutPool(name string, p FakePool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.Volumes == nil {
		p.Volumes = map[string][]byte{}
	}
	if p.Disks == nil {
		p.Disks = map[string]FakeVolume{}
	}
	f.pools[name] = &p
}

// Configured returns a domain's XML, "" if there is none.
func (f *Fake) Configured(uuid string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d, ok := f.domains[uuid]; ok {
		return d.Configured
	}
	return ""
}

// Running returns the XML of a running domain, "" when it is off.
func (f *Fake) Running(uuid string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d, ok := f.domains[uuid]; ok {
		return d.Running
	}
	return ""
}

// Contents lists pools and volumes with their sizes.
func (f *Fake) Contents() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.pools)) {
		fmt.Fprintf(&b, "pool %s\n", name)
		for _, v := range slices.Sorted(maps.Keys(f.pools[name].Volumes)) {
			fmt.Fprintf(&b, "  %s\n", v)
		}
	}
	return b.String()
}

// Volume returns the content of a volume.
func (f *Fake) Volume(pool, name string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pools[pool].Volumes[name]
}

func (f *Fake) note(format string, args ...any) error {
	op := fmt.Sprintf(format, args...)
	f.Calls = append(f.Calls, op)
	verb, _, _ := strings.Cut(op, " ")
	return f.Refuses[verb]
}

func (f *Fake) domain(uuid string) (*FakeDomain, error) {
	d, ok := f.domains[uuid]
	if !ok {
		return nil, fmt.Errorf("%w: no domain with matching uuid '%s'", errAbsent, uuid)
	}
	return d, nil
}

func (f *Fake) Facts(context.Context) (facts, error) {
	arch := ""
	if !f.NoQEMU {
		kvm := "<domain type='kvm'/>"
		if f.NoKVM {
			kvm = ""
		}
		arch = "<guest><os_type>hvm</os_type><arch name='x86_64'><emulator>/usr/bin/qemu-system-x86_64</emulator>" +
			"<domain type='qemu'/>" + kvm + "</arch></guest>"
	}
	return facts{
		URI: "qemu:///session", Libvirt: "9.0.0", Hypervisor: "7.2.22", Capacity: f.Node,
		Capabilities: "<capabilities><host><cpu><arch>x86_64</arch></cpu></host>" + arch + "</capabilities>",
	}, nil
}

func (f *Fake) Alive() bool { return f.Down == nil }

func (f *Fake) Close() error {
	f.Closed++
	return nil
}

func (f *Fake) Domains(context.Context) ([]domainRef, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["domains"]++
	if err := f.Refuses["list"]; err != nil {
		return nil, err
	}
	var all []domainRef
	for _, uuid := range slices.Sorted(maps.Keys(f.domains)) {
		all = append(all, f.ref(uuid))
	}
	return all, nil
}

func (f *Fake) ref(uuid string) domainRef {
	d := f.domains[uuid]
	return domainRef{
		UUID: uuid, Name: d.Name, Transient: d.Transient, Saved: d.Saved,
		HasSnapshots: len(d.Snapshots) > 0, HasCheckpoints: len(d.Checkpoints) > 0,
	}
}

func (f *Fake) Domain(_ context.Context, uuid string) (domainRef, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.domain(uuid); err != nil {
		return domainRef{}, err
	}
	return f.ref(uuid), nil
}

func (f *Fake) DomainNamed(_ context.Context, name string) (domainRef, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for uuid, d := range f.domains {
		if d.Name == name {
			return f.ref(uuid), nil
		}
	}
	return domainRef{}, errAbsent
}

func (f *Fake) XML(_ context.Context, uuid string, of version) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["xml"]++
	d, err := f.domain(uuid)
	if err != nil {
		return "", err
	}
	if f.Panics == d.Name {
		panic("planted")
	}
	if err := f.Unreadable[d.Name]; err != nil {
		return "", err
	}
	if of == asRunning && d.Power.on() || d.Transient {
		return d.Running, nil
	}
	return d.Configured, nil
}

func (f *Fake) Power(_ context.Context, uuid string) (power, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["power"]++
	d, err := f.domain(uuid)
	if err != nil {
		return power{}, err
	}
	return d.Power, nil
}

func (f *Fake) Job(_ context.Context, uuid string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["job"]++
	d, err := f.domain(uuid)
	if err != nil || !d.Power.on() {
		return "", err
	}
	return d.Job, nil
}

// Ran returns the time since the fake began: guests run all the time.
func (f *Fake) Ran(_ context.Context, uuid string) (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.domain(uuid); err != nil {
		return 0, err
	}
	return time.Duration(f.slept.Load()), nil
}

func (f *Fake) Snapshots(_ context.Context, uuid string) ([]snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return nil, err
	}
	return d.Snapshots, nil
}

func (f *Fake) Checkpoints(_ context.Context, uuid string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return nil, err
	}
	return d.Checkpoints, nil
}

func (f *Fake) Define(_ context.Context, text string) error {
	if f.BeforeDefine != nil {
		f.BeforeDefine()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var x libvirtxml.Domain
	if err := x.Unmarshal(text); err != nil {
		return err
	}
	if err := f.note("define %s", x.Name); err != nil {
		return err
	}
	if err := f.fits(x.Name, x.UUID); err != nil {
		return err
	}
	d, ok := f.domains[x.UUID]
	if !ok {
		d = &FakeDomain{Name: x.Name, Power: FakeOff}
		f.domains[x.UUID] = d
	}
	d.Configured, d.Transient = text, false
	return nil
}

// fits fails for a name that another domain has, and for another name of a domain.
func (f *Fake) fits(name, uuid string) error {
	for id, d := range f.domains {
		if d.Name == name && id != uuid {
			return &libvirtError{Code: codeOperationFailed, Message: "operation failed: domain '" + name + "' already exists with uuid " + id}
		}
		if id == uuid && d.Name != name {
			return &libvirtError{Code: codeOperationFailed, Message: "operation failed: domain '" + d.Name + "' is already defined with uuid " + id}
		}
	}
	return nil
}

const codeOperationFailed = 9

func (f *Fake) Undefine(_ context.Context, uuid string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return err
	}
	if err := f.note("undefine %s", d.Name); err != nil {
		return err
	}
	f.undefine(uuid)
	return nil
}

func (f *Fake) Unmark(_ context.Context, uuid string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return err
	}
	if err := f.note("unmark %s", d.Name); err != nil {
		return err
	}
	for _, text := range []*string{&d.Configured, &d.Running} {
		if *text == "" {
			continue
		}
		if *text, err = withMark(*text, ""); err != nil {
			return err
		}
	}
	return nil
}

// undefine removes the configuration of a domain. A running domain keeps running until it is
// off.
func (f *Fake) undefine(uuid string) {
	if d := f.domains[uuid]; d.Power.on() {
		d.Transient, d.Configured = true, ""
		return
	}
	delete(f.domains, uuid)
}

func (f *Fake) Start(_ context.Context, uuid string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return err
	}
	desc, err := describe(d.Configured)
	if err != nil {
		return err
	}
	if err := f.note("start %s on %s", d.Name, desc.Virtualized); err != nil {
		return err
	}
	if d.Power.on() {
		return &libvirtError{Code: codeOperationInvalid, Message: "Requested operation is not valid: domain is already running"}
	}
	if err := f.bootable(d, desc); err != nil {
		return err
	}
	if err := f.cardsWork(desc); err != nil {
		return err
	}
	kvm := desc.Virtualized == "kvm"
	if kvm && f.KVMBreaks == "start" {
		return ErrLibvirt("internal error: process exited while connecting to monitor: qemu-system-x86_64: error: failed to set MSR 0x10a")
	}
	if f.Booting != nil {
		f.SSH[d.Name] = f.Booting(d.Name, uuid)
	}
	var held []machine.Forward
	all := desc.Forwards
	if desc.SSH != nil {
		all = append([]machine.Forward{*desc.SSH}, all...)
	}
	for _, h := range all {
		if slices.Contains(f.Taken, h.Host) || f.listens(h, uuid) {
			return ErrLibvirt("internal error: process exited while connecting to monitor: qemu-system-x86_64: -netdev user: " +
				"Could not set up host forwarding rule '" + hostfwd(h) + "'")
		}
		if h.Guest == sshPort && f.Answering != nil {
			h.Host = f.Answering(uuid, h.Host, f.asked())
		}
		if h.Guest == sshPort && f.SSH[d.Name] != 0 {
			h.Host = f.SSH[d.Name]
			if !kvm && f.SSHAfterTCG != 0 {
				h.Host = f.SSHAfterTCG
			}
		}
		if h.Host == 0 {
			f.nextID++
			h.Host = f.nextID
		}
		held = append(held, h)
	}
	d.Held, d.Running, d.Power = held, d.Configured, FakeRunning
	if kvm && f.KVMBreaks == "pause" {
		d.Power = powerOf(3, 0)
	}
	if kvm && f.KVMBreaks == "power off" {
		d.Power, d.Running = powerOf(5, 1), ""
	}
	if desc.ConsoleLog != "" {
		for _, p := range f.pools {
			if p.Path == path.Dir(desc.ConsoleLog) {
				p.Volumes[path.Base(desc.ConsoleLog)] = []byte(f.BootLog)
			}
		}
	}
	return nil
}

// listens reports whether another domain that runs holds a host port.
func (f *Fake) listens(h machine.Forward, but string) bool {
	for uuid, d := range f.domains {
		if h.Fixed() && uuid != but && d.Power.on() && slices.ContainsFunc(d.Held, func(o machine.Forward) bool {
			return o.Host == h.Host && o.Protocol == h.Protocol && o.HostIP == h.HostIP
		}) {
			return true
		}
	}
	return false
}

// bootable fails for files that do not exist, and for disks that another domain runs
// with.
func (f *Fake) bootable(d *FakeDomain, desc description) error {
	files := []string{desc.Kernel, desc.Initrd}
	for _, x := range desc.disks(nil) {
		files = append(files, x.file())
	}
	for _, file := range files {
		inPool, there := f.fileExists(file)
		if inPool && !there {
			return ErrLibvirt("Cannot access storage file '" + file + "': No such file or directory")
		}
	}
	for _, x := range desc.disks(nil) {
		if by := f.usedBy(x.file()); by != "" && by != d.Name {
			return ErrLibvirt("internal error: process exited while connecting to monitor: qemu-system-x86_64: Failed to get \"write\" lock\n" +
				"Is another process using the image [" + x.file() + "]?")
		}
	}
	return nil
}

// fileExists reports whether a file is in the folder of a pool, and whether it exists.
func (f *Fake) fileExists(file string) (inPool, there bool) {
	for _, p := range f.pools {
		if p.Path == path.Dir(file) {
			_, there = p.Volumes[path.Base(file)]
			return true, there
		}
	}
	return false, false
}

func (f *Fake) Resume(_ context.Context, uuid string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return err
	}
	if err := f.note("resume %s", d.Name); err != nil {
		return err
	}
	d.Power = powerOf(1, 5)
	return nil
}

func (f *Fake) Wake(_ context.Context, uuid string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return err
	}
	if err := f.note("wake %s", d.Name); err != nil {
		return err
	}
	d.Power = powerOf(1, 8)
	return nil
}

func (f *Fake) Shutdown(_ context.Context, uuid string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return err
	}
	if err := f.note("shutdown %s", d.Name); err != nil {
		return err
	}
	if !d.Power.on() {
		return &libvirtError{Code: codeOperationInvalid, Message: "Requested operation is not valid: domain is not running"}
	}
	if !f.Deaf {
		f.off(uuid, powerOf(5, 1))
	}
	return nil
}

func (f *Fake) Destroy(_ context.Context, uuid string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return err
	}
	if err := f.note("destroy %s", d.Name); err != nil {
		return err
	}
	if !d.Power.on() {
		return &libvirtError{Code: codeOperationInvalid, Message: "Requested operation is not valid: domain is not running"}
	}
	if !f.Stuck {
		f.off(uuid, powerOf(5, 2))
	}
	return nil
}

func (f *Fake) off(uuid string, p power) {
	d := f.domains[uuid]
	if f.Ended != nil {
		f.Ended(d.Name)
	}
	if d.Transient {
		delete(f.domains, uuid)
		return
	}
	d.Power, d.Running, d.Held = p, "", nil
}

func (f *Fake) Monitor(_ context.Context, uuid, command string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.domain(uuid)
	if err != nil {
		return "", err
	}
	if err := f.Refuses["monitor"]; err != nil {
		return "", err
	}
	switch command {
	case "info status":
		return "VM status: " + strings.ReplaceAll(d.Power.Words, "internal error", "internal-error") + "\r\n", nil
	case "info usernet":
		var b strings.Builder
		b.WriteString("Hub -1 (vmctl0):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n")
		for _, h := range d.Held {
			fmt.Fprintf(&b, "  %s[HOST_FORWARD]  11  %s %d  10.0.2.15 %d 0 0\r\n", strings.ToUpper(h.Protocol), h.HostIP, h.Host, h.Guest)
		}
		return b.String(), nil
	default:
		return "", fmt.Errorf("unknown command: '%s'", command)
	}
}

func (f *Fake) pool(name string) (*FakePool, error) {
	p, ok := f.pools[name]
	if !ok {
		return nil, fmt.Errorf("%w: no storage pool with matching name '%s'", errAbsent, name)
	}
	return p, nil
}

func (f *Fake) Pool(_ context.Context, name string) (pool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["pool"]++
	p, err := f.pool(name)
	if err != nil {
		return pool{}, err
	}
	return pool{Name: name, Type: p.Type, Path: p.Path, Active: p.Active, Available: p.free}, nil
}

func (f *Fake) Refresh(ctx context.Context, name string) (pool, error) {
	f.mu.Lock()
	f.Asked["refresh"]++
	if p, err := f.pool(name); err == nil {
		p.free = f.Free
		if !p.Active {
			f.mu.Unlock()
			return pool{}, notActive(name)
		}
	}
	f.mu.Unlock()
	return f.Pool(ctx, name)
}

func notActive(pool string) error {
	return ErrLibvirt("Requested operation is not valid: storage pool '" + pool + "' is not active")
}

func (f *Fake) DefinePool(_ context.Context, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := parsePool(text)
	if err != nil {
		return err
	}
	if err := f.note("define-pool %s at %s", p.Name, p.Path); err != nil {
		return err
	}
	if _, there := f.pools[p.Name]; there {
		return &libvirtError{Code: codeOperationFailed, Message: "operation failed: pool '" + p.Name + "' already exists"}
	}
	f.pools[p.Name] = &FakePool{Type: p.Type, Path: p.Path, Volumes: map[string][]byte{}, Disks: map[string]FakeVolume{}}
	return nil
}

func (f *Fake) StartPool(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.pool(name)
	if err != nil {
		return err
	}
	if err := f.note("start-pool %s", name); err != nil {
		return err
	}
	p.Active, p.free = true, f.Free
	return nil
}

func (f *Fake) RemovePool(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.pool(name); err != nil {
		return err
	}
	if err := f.note("remove-pool %s", name); err != nil {
		return err
	}
	delete(f.pools, name)
	return nil
}

func (f *Fake) Volumes(_ context.Context, name string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Asked["volumes"]++
	f.Asked["refresh"]++
	p, err := f.pool(name)
	if err != nil {
		return nil, err
	}
	if !p.Active {
		return nil, notActive(name)
	}
	p.free = f.Free
	return slices.Sorted(maps.Keys(p.Volumes)), nil
}

func (f *Fake) Upload(_ context.Context, name string, u upload) error {
	if f.BeforeStore != nil {
		f.BeforeStore(u.Name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.pool(name)
	if err != nil {
		return err
	}
	if _, ok := p.Volumes[u.Name]; ok {
		return ErrLibvirt("storage volume name '" + u.Name + "' already in use.")
	}
	if err := f.note("upload %s", u.Name); err != nil {
		if f.FreeAfterUpload != 0 {
			f.Free = f.FreeAfterUpload
		}
		return err
	}
	b, err := io.ReadAll(u.Content)
	if err != nil {
		return err
	}
	p.Volumes[u.Name] = b
	return nil
}

func (f *Fake) DeleteVolume(_ context.Context, name, volume string) error {
	if f.BeforeStore != nil {
		f.BeforeStore(volume)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.pool(name)
	if err != nil {
		return err
	}
	if _, ok := p.Volumes[volume]; !ok {
		f.Asked["refresh"]++
		return errAbsent
	}
	if err := f.note("delete %s", volume); err != nil {
		return err
	}
	delete(p.Volumes, volume)
	delete(p.Disks, volume)
	return nil
}
