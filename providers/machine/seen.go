package machine

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// Config is one version of a VM in a spec's words: of its next start, or of its running
// process.
type Config struct {
	CPUs       uint64
	Memory     uint64 // bytes
	Accel      string
	Boot       *Boot                // by its digests; nil: it boots from a disk
	Forwards   []Forward            // with host 0 where the kernel was to choose
	Disks      []string             // the additional disks, by their addresses, else in words
	DiskIDs    []providers.ID       // of the additional disks; "": not known
	Files      []string             // the system's names of the additional disks
	Mounted    []string             // the paths at which the guest mounts them, "" for none; nil: it mounts none
	Interfaces []SeenInterface      // the networks that it is in; nil: the system has none
	Booted     []string             // the system's names of the boot files; nil: it has none
	Others     map[string]cty.Value // further attributes
}

// values returns the attributes. A VM that is half made has no cpus and no memory, which every VM
// has.
func (c *Config) values() map[string]cty.Value {
	if c == nil {
		return map[string]cty.Value{"cpus": cty.NullVal(cty.Number), "memory": cty.NullVal(cty.Number)}
	}
	all := map[string]cty.Value{
		"cpus":            cty.NumberUIntVal(c.CPUs),
		"memory":          cty.NumberUIntVal(c.Memory),
		"accel":           cty.StringVal(c.Accel),
		"port_forward":    ForwardsValue(c.Forwards),
		"boot":            BootValue(c.Boot),
		"additional_disk": DisksValue(c.Disks, c.Mounted),
	}
	if c.Interfaces != nil {
		all["network_interface"] = InterfacesValue(c.Interfaces)
	}
	maps.Copy(all, c.Others)
	return all
}

// addTo adds the facts of the configuration that a step relies on. The addresses of its disks are
// none: an import gives a disk another one.
func (c *Config) addTo(p *guard.Print, prefix string, digest func(string) string) {
	if c == nil {
		p.Add(prefix+"configuration", "none")
		return
	}
	var forwards []string
	for _, f := range c.Forwards {
		forwards = append(forwards, f.Listens()+"/"+f.Protocol+" to "+strconv.Itoa(int(f.Guest)))
	}
	p.Add(prefix+"cpus", strconv.FormatUint(c.CPUs, 10))
	p.Add(prefix+"memory", strconv.FormatUint(c.Memory, 10))
	p.Add(prefix+"accel", c.Accel)
	if b := c.Boot; b != nil {
		p.Add(prefix+"boot files", b.KernelSHA256+" "+b.InitrdSHA256)
		p.Add(prefix+"kernel command line", guard.Short(b.Cmdline))
	}
	p.Add(prefix+"forwarded ports", strings.Join(forwards, ", "))
	p.Add(prefix+"disks", strings.Join(c.Files, ", "))
	if c.Mounted != nil {
		p.Add(prefix+"paths of disks", strings.Join(c.Mounted, ", "))
	}
	p.Add(prefix+"names of boot files", strings.Join(c.Booted, ", "))
	for _, name := range slices.Sorted(maps.Keys(c.Others)) {
		p.Add(prefix+name, guard.Keyed(digest, c.Others[name].GoString()))
	}
}

// Seen is a VM as a system was seen to have it.
type Seen struct {
	ID         providers.ID
	Name       string
	Mark       *providers.Mark
	State      string            // "": it could not be read, and Unreadable says why
	Power      string            // the run state as far as steps rely on it; "": State
	Words      string            // the run state in the words of the system; "": State
	Unreadable string            // the reason why the run state is not known; "": it is
	Configured *Config           // for its next start; nil: it is half made
	Running    *Config           // nil: it is off
	Got        []Forward         // the forwarded ports with the host ports that they got; nil: it is off
	Claims     []providers.Claim // beside those of its versions
	Computed   map[string]cty.Value
	Facts      [][2]string         // further names and values that a step relies on
	Digest     func(string) string // providers.Settings.Digest: of attributes that may be sensitive
	Findings   []providers.Finding
	Protected  string // the reason why the system lets nobody remove it; "": it would
	Volatile   bool   // its root is in memory
}

// Object describes the VM for the planner.
func (s Seen) Object() providers.Object {
	all := s.Configured.values()
	live := cty.NilVal
	if s.Running != nil {
		live = providers.LiveOf(all, s.Running.values())
	}
	maps.Copy(all, s.Computed)
	o := providers.Object{
		Kind: spec.VM, ID: s.ID, Name: s.Name, State: s.State, Owner: s.Mark, Attrs: cty.ObjectVal(all), Live: live,
		Holds: s.Holds(), Unreadable: map[string]string{}, Findings: s.Findings, Fingerprint: s.Fingerprint(),
		Protected: s.Protected, Volatile: s.Volatile,
	}
	if s.Mark != nil && s.Mark.Of != s.ID {
		o.Findings = append(o.Findings, providers.Finding{
			Kind: providers.FindCopy, Address: s.Mark.Address, Object: s.Name, Evidence: []string{"its mark was written for " + string(s.Mark.Of)},
			Action: "left alone",
		})
	}
	if s.Unreadable != "" {
		o.Unreadable["running"] = s.Unreadable
		return o
	}
	running := s.State == providers.StateRunning
	o.Running, o.HoldsUp = &running, ChosenPorts(s.Got, o.Holds)
	return o
}

// Holds returns the claims of the VM: it holds them as long as it exists. Claims of its running
// configuration count until it stops.
func (s Seen) Holds() []providers.Claim {
	all := slices.Clone(s.Claims)
	for _, claims := range []func(*Config) []providers.Claim{(*Config).diskClaims, (*Config).portClaims, (*Config).addressClaims, (*Config).networkClaims} {
		for _, c := range []*Config{s.Configured, s.Running} {
			all = append(all, without(claims(c), all)...)
		}
	}
	return all
}

func (c *Config) diskClaims() []providers.Claim {
	if c == nil {
		return nil
	}
	var all []providers.Claim
	for _, id := range c.DiskIDs {
		if id != "" {
			all = append(all, DiskClaim(id))
		}
	}
	return all
}

func (c *Config) portClaims() []providers.Claim {
	if c == nil {
		return nil
	}
	return PortClaims(c.Forwards)
}

// Fingerprint covers the facts that a step on the VM relies on. It leaves out the IDs of disks:
// an imported disk gets another one.
func (s Seen) Fingerprint() string {
	var p guard.Print
	p.Add("id", string(s.ID))
	p.Add("name", s.Name)
	p.Add("run state", cmp.Or(s.Power, s.State))
	for _, fact := range s.Facts {
		p.Add(fact[0], fact[1])
	}
	p.AddMark(s.Mark)
	for _, c := range s.Holds() {
		if c.Kind != providers.ClaimDisk && c.Kind != providers.ClaimUse {
			p.Add("claim", c.String())
		}
	}
	s.Configured.addTo(&p, "", s.Digest)
	if s.Running != nil {
		s.Running.addTo(&p, "running ", s.Digest)
	}
	return p.String()
}

// IsTidy reports whether the VM is off and has no remains of its last run.
func (s Seen) IsTidy() bool {
	return s.State == providers.StateOff && !slices.ContainsFunc(s.Findings, func(f providers.Finding) bool { return f.Kind == providers.FindLeftover })
}

// Guarded returns the VM as a guard sees it.
func (s Seen) Guarded() *guard.Seen {
	running := s.State == providers.StateRunning
	return &guard.Seen{ID: s.ID, Name: s.Name, Mark: s.Mark, Fingerprint: s.Fingerprint(), Running: &running}
}
