package sim

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// config is what a VM is made of.
type config struct {
	CPUs     uint64    `json:"cpus"`
	Memory   uint64    `json:"memory"` // bytes
	Accel    string    `json:"accel"`
	Boot     *boot     `json:"boot,omitempty"`
	Forwards []forward `json:"forwards,omitempty"`

	Disks     []attached        `json:"disks,omitempty"`
	RootSize  uint64            `json:"root_size,omitempty"` // bytes; 0: as large as its content
	CloudInit *cloudInit        `json:"cloud_init,omitempty"`
	Triggers  map[string]string `json:"restart_triggers,omitempty"`
}

// cloudInit is what the guest is told at its first start.
type cloudInit struct {
	UserData      *string `json:"user_data,omitempty"`
	NetworkConfig *string `json:"network_config,omitempty"`
}

// boot is known by what is in the files, wherever they are.
type boot struct {
	KernelSHA256 string `json:"kernel_sha256"`
	InitrdSHA256 string `json:"initrd_sha256,omitempty"`
	Cmdline      string `json:"cmdline,omitempty"`
}

// forward is a port of this host on which the VM's process listens.
type forward struct {
	Guest    uint16 `json:"guest"`
	Host     uint16 `json:"host"` // 0: the kernel chooses
	HostIP   string `json:"host_ip"`
	Protocol string `json:"protocol"` // tcp, udp
}

const (
	loopback = "127.0.0.1"
	autoPort = "auto"
)

// address is where it listens: 127.0.0.1:8080.
func (f forward) address() string { return net.JoinHostPort(f.HostIP, strconv.Itoa(int(f.Host))) }

func (f forward) claim() providers.Claim {
	return providers.Claim{Kind: providers.ClaimPort, Key: f.address() + "/" + f.Protocol}
}

// The kinds of claims.
const (
	claimLock     = "the lock of root disk"
	claimDiskName = "disk name"
	claimDiskLock = "the lock of disk"
)

// kindProcess is the kind of an object that is no resource: a process that holds
// what a VM needs.
const kindProcess spec.Kind = "process"

// ports are the host ports that the spec chose.
func (c *config) ports() []providers.Claim {
	if c == nil {
		return nil
	}
	var all []providers.Claim
	for _, f := range c.Forwards {
		if f.Host != 0 {
			all = append(all, f.claim())
		}
	}
	return all
}

// configOf reads the attributes of a vm. What is unknown yet has its zero value:
// only names, run states and fixed ports are read before apply.
func configOf(v cty.Value, uses map[spec.Address]providers.Used) (config, error) {
	if !known(v) {
		return config{}, errors.New("it has no attributes")
	}
	c := config{CPUs: number(v, "cpus"), Memory: number(v, "memory"), Accel: text(v, "accel")}
	if b := attr(v, "boot"); known(b) {
		c.Boot = &boot{
			KernelSHA256: text(b, "kernel_sha256"), InitrdSHA256: text(b, "initrd_sha256"), Cmdline: text(b, "cmdline"),
		}
	}
	var err error
	if c.Forwards, err = forwardsOf(attr(v, "port_forward")); err != nil {
		return c, err
	}
	c.Disks, err = disksOf(attr(v, "additional_disk"), uses)
	c.RootSize = number(attr(v, "root_disk"), "size")
	if b := attr(v, "cloud_init"); known(b) {
		c.CloudInit = &cloudInit{UserData: textOrNone(b, "user_data"), NetworkConfig: textOrNone(b, "network_config")}
	}
	if t := attr(v, "restart_triggers"); known(t) {
		for key, value := range t.AsValueMap() {
			if known(value) {
				if c.Triggers == nil {
					c.Triggers = map[string]string{}
				}
				c.Triggers[key] = value.AsString()
			}
		}
	}
	return c, err
}

// disksOf are the disks that a VM is to be defined with. uses says what they are
// on this host; without it only mistakes are found.
func disksOf(v cty.Value, uses map[spec.Address]providers.Used) ([]attached, error) {
	if !known(v) {
		return nil, nil
	}
	var all []attached
	for _, e := range v.AsValueSlice() {
		where := text(e, "disk")
		if where == "" { // known only when it is applied
			continue
		}
		a, err := spec.ParseAddress(where)
		if err != nil {
			return nil, fmt.Errorf("additional_disk.disk: %w", err)
		}
		if slices.ContainsFunc(all, func(other attached) bool { return other.Address == a }) {
			return nil, fmt.Errorf("additional_disk: %s is attached twice", a)
		}
		all = append(all, attached{Address: a, ID: uses[a].ID, Name: uses[a].Name})
	}
	return all, nil
}

func forwardsOf(v cty.Value) ([]forward, error) {
	if !known(v) || !v.IsWhollyKnown() {
		return nil, nil
	}
	var all []forward
	var taken []providers.Claim
	for _, e := range v.AsValueSlice() {
		f := forward{Guest: uint16(number(e, "guest")), HostIP: text(e, "host_ip"), Protocol: text(e, "protocol")}
		if host := text(e, "host"); host != "" && host != autoPort {
			port, err := strconv.ParseUint(host, 10, 16)
			if err != nil || port == 0 {
				return nil, fmt.Errorf("port_forward.host = %q is neither %q nor a port", host, autoPort)
			}
			f.Host = uint16(port)
			if slices.ContainsFunc(taken, f.claim().Overlaps) {
				return nil, fmt.Errorf("port_forward: %s is forwarded twice", f.claim().Key)
			}
			taken = append(taken, f.claim())
		}
		all = append(all, f)
	}
	return all, nil
}

func seconds(d *time.Duration, v cty.Value, name string) {
	if n := attr(v, name); known(n) && n.Type() == cty.Number {
		f, _ := n.AsBigFloat().Float64()
		*d = time.Duration(f * float64(time.Second))
	}
}

// attr is an attribute of an object, NilVal where there is none.
func attr(v cty.Value, name string) cty.Value {
	if !known(v) || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	return v.GetAttr(name)
}

func known(v cty.Value) bool { return v != cty.NilVal && v.IsKnown() && !v.IsNull() }

func text(v cty.Value, name string) string {
	if a := attr(v, name); known(a) && a.Type() == cty.String {
		return a.AsString()
	}
	return ""
}

func textOrNone(v cty.Value, name string) *string {
	if a := attr(v, name); known(a) && a.Type() == cty.String {
		s := a.AsString()
		return &s
	}
	return nil
}

func flag(v cty.Value, name string) bool {
	a := attr(v, name)
	return known(a) && a.Type() == cty.Bool && a.True()
}

func number(v cty.Value, name string) uint64 {
	if a := attr(v, name); known(a) && a.Type() == cty.Number {
		n, _ := a.AsBigFloat().Uint64()
		return n
	}
	return 0
}
