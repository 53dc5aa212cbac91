package libvirt

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// wanted is a vm as the spec wants it.
type wanted struct {
	Running  bool
	CPUs     uint
	Memory   uint64 // bytes
	Accel    string // auto, kvm, tcg
	Boot     *boot
	Forwards []forward
	Disks    []spec.Address // additional ones, in order
	SSH      login

	Image                   *image
	RootDisk                uint64 // bytes
	UserData, NetworkConfig string // of cloud-init; "": none
}

type boot struct {
	Kernel, KernelSHA256 string
	Initrd, InitrdSHA256 string // "": none
	Cmdline              string
}

type login struct {
	User     string
	Identity string   // "": a pair of vmctl's own
	HostKey  string   // pin, accept-new
	Others   []string // lines of authorized_keys of who may log in, too
}

// forward is one forwarded port.
type forward struct {
	Guest, Host uint16 // Host 0: the kernel chooses
	HostIP      string
	Protocol    string
}

// fixed reports whether the spec chose the host port.
func (f forward) fixed() bool { return f.Host != 0 }

// The accelerators of a spec.
const (
	accelAuto = "auto"
	accelKVM  = "kvm"
	accelTCG  = "tcg"
)

// The ways in which a spec has host keys checked.
const (
	hostKeyPin       = "pin"
	hostKeyAcceptNew = "accept-new"
)

const (
	bootAttr    = "boot"
	forwardAttr = "port_forward"
	diskAttr    = "additional_disk"
	imageAttr   = "image"
	rootAttr    = "root_disk"
	seedAttr    = "cloud_init"
	autoPort    = "auto"

	identityAttr = "ssh.identity"
	othersAttr   = "ssh.authorized_keys"
	keysAttr     = providers.KeysPath
)

// wantedOf reads the attributes of a vm. What is unknown yet has its zero
// value: only names, run states and fixed ports are read before apply.
func wantedOf(v cty.Value) (wanted, error) {
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() {
		return wanted{}, fmt.Errorf("it has no attributes")
	}
	m := wanted{
		Running: flag(v, "running"),
		CPUs:    uint(number(v, "cpus")),
		Memory:  number(v, "memory"),
		Accel:   text(v, "accel"),
	}
	if b := attr(v, bootAttr); known(b) {
		m.Boot = &boot{
			Kernel: text(b, "kernel"), KernelSHA256: text(b, "kernel_sha256"),
			Initrd: text(b, "initrd"), InitrdSHA256: text(b, "initrd_sha256"),
			Cmdline: text(b, "cmdline"),
		}
	}
	m.SSH = loginOf(v)
	if i := attr(v, imageAttr); known(i) {
		m.Image = &image{Source: text(i, "source"), SHA256: strings.ToLower(text(i, "sha256"))}
	}
	m.RootDisk = number(attr(v, rootAttr), "size")
	m.UserData, m.NetworkConfig = text(attr(v, seedAttr), "user_data"), text(attr(v, seedAttr), "network_config")
	var err error
	if m.Disks, err = disksOf(attr(v, diskAttr)); err != nil {
		return m, err
	}
	m.Forwards, err = forwardsOf(attr(v, forwardAttr))
	return m, err
}

// loginOf reads the ssh block of a vm.
func loginOf(v cty.Value) login {
	ssh := attr(v, "ssh")
	return login{
		User: text(ssh, "user"), Identity: text(ssh, "identity"), HostKey: text(ssh, "host_key"), Others: linesOf(attr(ssh, "authorized_keys")),
	}
}

// linesOf returns the texts of a list, each without white space around it.
func linesOf(list cty.Value) []string {
	var all []string
	for _, line := range listOf(list) {
		if known(line) {
			all = append(all, strings.TrimSpace(line.AsString()))
		}
	}
	return all
}

func forwardsOf(v cty.Value) ([]forward, error) {
	if !known(v) {
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
		}
		if ip, err := netip.ParseAddr(f.HostIP); err == nil && !ip.Is4() {
			return nil, fmt.Errorf("port_forward.host_ip = %q: QEMU's user network forwards IPv4 addresses only", f.HostIP)
		}
		if f.fixed() {
			if slices.ContainsFunc(taken, f.claim().Overlaps) {
				return nil, fmt.Errorf("port_forward: %s is forwarded twice", f.claimKey())
			}
			taken = append(taken, f.claim())
		}
		all = append(all, f)
	}
	return all, nil
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
