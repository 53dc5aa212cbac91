package libvirt_test

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"libvirt.org/go/libvirtxml"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/search"
)

var survey = flag.Bool("search.survey", false, "count the laws that are broken, and go on")

// searched is a daemon in memory for each case, with guests that let vmctl in.
type searched struct {
	*libvirt.Fake
	t      *testing.T
	dir    string
	made   int
	guests *guests
}

func searching(t *testing.T, few, many int) search.Host {
	t.Helper()
	s := &searched{t: t, guests: newGuests(t)}
	proc := t.TempDir()
	if err := os.WriteFile(filepath.Join(proc, "cpuinfo"), []byte("flags\t\t: fpu\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	host := libvirt.Host{UID: 1000, Proc: proc, Getenv: func(string) string { return "/home/me" }}
	if testing.Short() {
		many = few
	}
	return search.Host{
		Survey: *survey, Cases: many,
		Type: libvirt.TypeOfStruckFake(host, func() *libvirt.Fake { return s.Fake }),
		Block: func([]search.Fault) string {
			return "provider \"libvirt\" \"here\" {\n  uri = \"qemu:///session\"\n}\n"
		},
		Faults:          struckFaults(),
		ExternalChanges: s.hands(),
		Folders: func(dir string) providers.Settings {
			return providers.Settings{Dir: filepath.Join(dir, "libvirt"), Keys: filepath.Join(dir, "keys")}
		},
		Make: func(_, name string) error {
			s.made++
			err := s.Define(t.Context(), fmt.Sprintf("<domain type='qemu'><name>%s</name><uuid>%s%012d</uuid>"+
				"<memory unit='KiB'>2097152</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='q35'>hvm</type></os><devices/></domain>", name, foundUUID, s.made))
			if err != nil && strings.Contains(err.Error(), "already exists") { // an earlier edit made it
				return nil
			}
			return err
		},
		Unmanaged: func(_ string, letGo map[string]bool) (map[string]string, error) { return s.theirs(letGo), nil },
		Reset:     s.reset,
		Strike:    s.strike,
		Traces:    func() []string { return append(s.Shown(), s.Contents()) },
	}
}

func (s *searched) reset(dir string) {
	s.Fake, s.dir = libvirt.NewFake(), dir
	s.NoKVM = true
	s.Answering = func(uuid string, asked uint16, taken map[uint16]bool) uint16 {
		return s.guests.answer(filepath.Join(dir, "keys", uuid), asked, taken)
	}
}

// theirs returns the domains that are not vmctl's: copies, and domains that it released.
func (s *searched) theirs(letGo map[string]bool) map[string]string {
	all := map[string]string{}
	for _, uuid := range s.UUIDs() {
		text := s.Configured(uuid) + s.Running(uuid)
		free := letGo[uuid] && !strings.Contains(text, "urn:vmctl:1") && !strings.HasPrefix(uuid, foundUUID) // it may be imported again
		if free || strings.HasPrefix(uuid, "99999999") {
			all[uuid] = text
		}
	}
	return all
}

const foundUUID = "88888888-2222-8333-8444-"

func (s *searched) strike(all []search.Fault) {
	s.Calm()
	for _, f := range all {
		s.Strike(f.Op, f.Kind)
	}
}

func struckFaults() []search.Fault {
	all := []search.Fault{{Op: "start", Kind: libvirt.FaultDie}, {Op: "upload", Kind: libvirt.FaultHalf}}
	for _, op := range []string{
		"define", "undefine", "unmark", "start", "shutdown", "destroy", "attach", "resize", "define-pool", "start-pool", "remove-pool",
		"delete-volume", "overwrite", "make-volume", "upload", "monitor",
	} {
		all = append(all, search.Fault{Op: op, Kind: libvirt.FaultFail}, search.Fault{Op: op, Kind: libvirt.FaultLost})
	}
	return all
}

const searchedPool = "vmctl-demo-" + lineage

func (s *searched) hands() []search.ExternalChange {
	return []search.ExternalChange{
		{Name: "end a domain", Do: s.onDomain(func(uuid string) string {
			if s.Running(uuid) == "" {
				return ""
			}
			s.End(uuid)
			return "crashes"
		})},
		{Name: "pause a domain", Do: s.onDomain(func(uuid string) string {
			if s.Running(uuid) == "" {
				return ""
			}
			s.Put(uuid, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakePaused })
			return "is paused"
		})},
		{Name: "destroy and undefine a domain", Do: s.onDomain(func(uuid string) string {
			s.Vanish(uuid, false)
			return "is undefined"
		})},
		{Name: "undefine a domain that runs", Do: s.onDomain(func(uuid string) string {
			if s.Running(uuid) == "" {
				return ""
			}
			s.Vanish(uuid, true)
			return "is undefined and runs on"
		})},
		{Name: "unmark a domain", Do: s.onDomain(func(uuid string) string {
			return s.edited(uuid, "loses its mark", func(x *libvirtxml.Domain) { x.Metadata = nil })
		})},
		{Name: "change a domain", Do: s.onDomain(func(uuid string) string {
			return s.edited(uuid, "gets 7 CPUs and other memory", func(x *libvirtxml.Domain) {
				x.VCPU = &libvirtxml.DomainVCPU{Value: 7}
				x.Memory = &libvirtxml.DomainMemory{Unit: "MiB", Value: 77}
			})
		})},
		{Name: "detach the disks of a domain", Do: s.onDomain(func(uuid string) string {
			return s.edited(uuid, "loses its disks", func(x *libvirtxml.Domain) {
				if x.Devices != nil {
					x.Devices.Disks = nil
				}
			})
		})},
		{Name: "rename a domain", Do: func(_ string, pick func(int) int) (string, error) {
			name := []string{"n1", "n3", "other"}[pick(3)]
			return s.onDomain(func(uuid string) string {
				if !s.Rename(uuid, name) {
					return ""
				}
				return "is renamed to " + name
			})("", pick)
		}},
		{Name: "copy a domain", Do: s.onDomain(func(uuid string) string {
			if strings.Contains(s.Configured(uuid), "-copy<") || slices.Contains(s.UUIDs(), otherOf(uuid)) {
				return ""
			}
			s.Copy(uuid, otherOf(uuid), uuid+"-copy")
			if err := s.Edit(otherOf(uuid), func(x *libvirtxml.Domain) { x.Devices, x.QEMUCommandline = nil, nil }); err != nil {
				s.t.Fatal(err)
			}
			return "is copied"
		})},
		{Name: "take a name", Do: func(_ string, pick func(int) int) (string, error) {
			i := pick(3)
			name := []string{"n1", "n2", "demo.a"}[i]
			text := fmt.Sprintf("<domain type='qemu'><name>%s</name><uuid>99999999-2222-8333-8444-00000000000%d</uuid></domain>", name, i)
			if err := s.Define(s.t.Context(), text); err != nil {
				return "", nil //nolint:nilerr // somebody has the name
			}
			return "defines " + name, nil
		}},
		{Name: "delete a disk", Do: s.onVolume(isDiskVolume, func(name string) string {
			s.DropVolume(searchedPool, name)
			return "is deleted"
		})},
		{Name: "delete a boot file", Do: s.onVolume(isBootVolume, func(name string) string {
			s.DropVolume(searchedPool, name)
			return "is deleted"
		})},
		{Name: "unmark a disk", Do: s.onVolume(isSidecar, func(name string) string {
			s.DropVolume(searchedPool, name)
			return "is deleted"
		})},
		{Name: "grow a disk", Do: s.onVolume(isDiskVolume, func(name string) string {
			if !s.Grow(searchedPool, name, 64<<20) {
				return ""
			}
			return "grows"
		})},
		{Name: "delete keys", Do: func(_ string, pick func(int) int) (string, error) {
			all, err := filepath.Glob(filepath.Join(s.dir, "keys", "*", "id_ed25519"))
			if err != nil || len(all) == 0 {
				return "", err
			}
			path := all[pick(len(all))]
			return "removes the keys " + filepath.Base(filepath.Dir(path)), os.Remove(path)
		}},
	}
}

func isSidecar(name string) bool { return strings.HasSuffix(name, ".vmctl") }

func isDiskVolume(name string) bool {
	return strings.HasSuffix(name, ".qcow2") || strings.HasSuffix(name, ".raw")
}

func isBootVolume(name string) bool {
	return strings.Contains(name, ".kernel-") || strings.Contains(name, ".initrd-")
}

// otherOf returns the UUID of the copy of a domain.
func otherOf(uuid string) string { return "99999999" + uuid[8:] }

func (s *searched) edited(uuid, did string, edit func(*libvirtxml.Domain)) string {
	if err := s.Edit(uuid, edit); err != nil {
		s.t.Fatal(err)
	}
	return did
}

// onDomain returns an event that changes one of the domains.
func (s *searched) onDomain(do func(uuid string) string) func(string, func(int) int) (string, error) {
	return func(_ string, pick func(int) int) (string, error) {
		all := s.UUIDs()
		if len(all) == 0 {
			return "", nil
		}
		uuid := all[pick(len(all))]
		ref := s.NameOf(uuid)
		did := do(uuid)
		if did == "" {
			return "", nil
		}
		return ref + " " + did, nil
	}
}

// onVolume returns an event that changes one of the volumes.
func (s *searched) onVolume(such func(string) bool, do func(name string) string) func(string, func(int) int) (string, error) {
	return func(_ string, pick func(int) int) (string, error) {
		all := slices.DeleteFunc(s.VolumesIn(searchedPool), func(name string) bool { return !such(name) })
		if len(all) == 0 {
			return "", nil
		}
		name := all[pick(len(all))]
		did := do(name)
		if did == "" {
			return "", nil
		}
		return "volume " + name + " " + did, nil
	}
}

// guests is a set of SSH servers, one on the port of each domain. Each knows the keys that
// vmctl gave to its domain.
type guests struct {
	t     *testing.T
	mu    sync.Mutex
	ports map[uint16]string // the folder with the keys of the guest on the port
	given []uint16          // the ports, that which was given last at the end
	work  sync.WaitGroup
	ends  []net.Listener
}

func newGuests(t *testing.T) *guests {
	g := &guests{t: t, ports: map[uint16]string{}}
	t.Cleanup(func() {
		for _, l := range g.ends {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
		g.work.Wait()
	})
	return g
}

// resting is the number of other guests that come up before a port is given again. A spec may ask for the port of
// a domain that ends: a kernel gives it to another one once in thousands of times.
const resting = 32

// answer chooses the port on which the guest with these keys answers: the requested one, or
// one that no domain has, nor had a while ago.
func (g *guests) answer(keys string, asked uint16, taken map[uint16]bool) uint16 {
	g.mu.Lock()
	defer g.mu.Unlock()
	port := asked
	if port == 0 {
		if free := slices.DeleteFunc(slices.Clone(g.given), func(p uint16) bool { return taken[p] }); len(free) > resting {
			port = free[0]
		}
	}
	if port == 0 {
		port = g.listen()
	}
	g.given = append(slices.DeleteFunc(g.given, func(p uint16) bool { return p == port }), port)
	g.ports[port] = keys
	return port
}

func (g *guests) listen() uint16 {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	g.ends = append(g.ends, l)
	g.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			keys := g.ports[port]
			g.mu.Unlock()
			g.serve(conn, keys)
		}
	})
	return port
}

// serve accepts a client with the key in the folder, and shows the folder's host key.
func (g *guests) serve(conn net.Conn, keys string) {
	defer conn.Close() //nolint:errcheck // the client may be gone
	text, err := os.ReadFile(filepath.Join(keys, "ssh_host_ed25519_key"))
	if err != nil {
		return
	}
	host, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(host)
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		if err := c.Reject(ssh.Prohibited, "no"); err != nil {
			break
		}
	}
	server.Close() //nolint:errcheck // the client may be gone
}

// row X13
func TestEditsOfSpecs(t *testing.T) { search.Edits(t, searching(t, 20, 100)) }

// row X13
func TestWorldsOfOthers(t *testing.T) { search.Worlds(t, searching(t, 10, 50)) }
