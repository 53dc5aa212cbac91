package machine

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// VM describes a VM that a spec wants.
type VM struct {
	Running  bool
	CPUs     uint64
	Memory   uint64 // bytes
	Accel    string // AccelAuto, AccelKVM, AccelTCG
	Boot     *Boot  // nil: it boots from a disk
	Forwards []Forward
	// MountPoints has the paths at which the guest mounts its additional disks; no key: it does not.
	MountPoints map[spec.Address]string
	Disks       []spec.Address // additional disks, in order
	SSH         Login
	Image       *Image     // nil: it has no disk of its own
	RootDisk    uint64     // bytes; 0: as large as the image
	CloudInit   *CloudInit // nil: there is no such block
	Triggers    map[string]string
	Template    string            // canonical YAML; "": none
	Params      map[string]string // of the template
	Plain       bool
	Mounts      []Mount     // in order
	Interfaces  []Interface // in order, as far as their addresses are known
}

// Mount is a folder of the host that the guest mounts.
type Mount struct {
	Source   string // as the spec has it: absolute, relative to the spec's folder, or after "~/" to the home folder
	Target   string // "": the same path as the source
	Writable bool
}

// The accelerators of a spec.
const (
	AccelAuto = "auto"
	AccelKVM  = "kvm"
	AccelTCG  = "tcg"
)

// Boot describes the kernel that a VM boots. The digests are of the files' contents.
type Boot struct {
	Kernel       string `json:"-"` // path
	KernelSHA256 string `json:"kernel_sha256"`
	Initrd       string `json:"-"` // path; "": none
	InitrdSHA256 string `json:"initrd_sha256,omitempty"`
	Cmdline      string `json:"cmdline,omitempty"`
}

// Login describes an SSH login to the guest.
type Login struct {
	User           string
	Identity       string   // path of a private key; "": a pair of vmctl's own
	HostKey        string   // HostKeyPin, HostKeyAcceptNew
	AuthorizedKeys []string // further lines of authorized_keys, of other people who may log in
}

// The policies by which host keys are checked.
const (
	HostKeyPin       = "pin"
	HostKeyAcceptNew = "accept-new"
)

// Image describes the image that the root disk of a VM begins as.
type Image struct {
	Source string // path, or http or https address
	SHA256 string // the digest that the image must have, in lower case; "": any
}

// IsURL reports whether the image has to be downloaded.
func (i Image) IsURL() bool {
	return strings.HasPrefix(i.Source, "http://") || strings.HasPrefix(i.Source, "https://")
}

// CloudInit holds the texts for cloud-init at the guest's first start. A nil text is absent,
// which differs from "".
type CloudInit struct {
	UserData      *string `json:"user_data,omitempty"`
	NetworkConfig *string `json:"network_config,omitempty"`
}

// Texts returns the texts for cloud-init, "" for an absent one.
func (c *CloudInit) Texts() (userData, networkConfig string) {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	if c == nil {
		return "", ""
	}
	return text(c.UserData), text(c.NetworkConfig)
}

// Forward is a port of the host that leads to a port of the guest.
type Forward struct {
	Guest    uint16 `json:"guest"`
	Host     uint16 `json:"host"` // 0: the kernel chooses
	HostIP   string `json:"host_ip"`
	Protocol string `json:"protocol"` // TCP, UDP
}

// The protocols of forwarded ports.
const (
	TCP = "tcp"
	UDP = "udp"
)

// autoPort is the word in a spec for a host port that the kernel chooses.
const autoPort = "auto"

// Fixed reports whether the spec chose the host port.
func (f Forward) Fixed() bool { return f.Host != 0 }

// Listens returns where the forward listens: 127.0.0.1:8080.
func (f Forward) Listens() string { return net.JoinHostPort(f.HostIP, strconv.Itoa(int(f.Host))) }

// Claim returns the claim of a listener on the host port: 127.0.0.1:8080/tcp.
func (f Forward) Claim() providers.Claim {
	return providers.Claim{Kind: providers.ClaimPort, Key: f.Listens() + "/" + f.Protocol}
}

// PortClaims returns the claims on the host ports that the spec chose.
func PortClaims(all []Forward) []providers.Claim {
	var claims []providers.Claim
	for _, f := range all {
		if f.Fixed() {
			claims = append(claims, f.Claim())
		}
	}
	return claims
}

// ChosenPorts returns the claims on the host ports that a running object got beyond those that
// the spec chose.
func ChosenPorts(got []Forward, chosen []providers.Claim) []providers.Claim {
	return without(PortClaims(got), chosen)
}

// Claims returns the claims of a wanted VM on its name, on its disks as far as their IDs are known,
// on its addresses in networks, and on the host ports that the spec chose.
func Claims(name providers.Claim, want VM, uses map[spec.Address]providers.Used) []providers.Claim {
	all := []providers.Claim{name}
	for _, a := range want.Disks {
		if id := uses[a].ID; id != "" {
			all = append(all, DiskClaim(id))
		}
	}
	for _, i := range want.Interfaces {
		if name := uses[i.Network].Name; name != "" {
			all = append(all, providers.AddressClaim(name, i.IP))
		}
	}
	return append(all, PortClaims(want.Forwards)...)
}

// DiskClaim returns the claim on the disk of that ID.
func DiskClaim(id providers.ID) providers.Claim {
	return providers.Claim{Kind: providers.ClaimDisk, Key: string(id)}
}

// Decode reads the attributes of a vm. An unknown attribute has its zero value.
func Decode(v cty.Value) (VM, error) {
	if !ctyread.Known(v) {
		return VM{}, errors.New("it has no attributes")
	}
	vm := VM{
		Running: ctyread.True(v, "running"), CPUs: ctyread.Uint(v, "cpus"), Memory: ctyread.Uint(v, "memory"), Accel: ctyread.Text(v, "accel"),
		SSH: DecodeLogin(v), RootDisk: ctyread.Uint(ctyread.Attr(v, "root_disk"), "size"),
		Image: DecodeImage(v), Triggers: decodeTexts(ctyread.Attr(v, "restart_triggers")),
		Template: ctyread.Text(v, "template"), Params: decodeTexts(ctyread.Attr(v, "params")), Plain: ctyread.True(v, "plain"),
		Mounts: decodeMounts(ctyread.Attr(v, "mount")),
	}
	if b := ctyread.KnownAttr(v, "boot"); b != cty.NilVal {
		vm.Boot = &Boot{
			Kernel: ctyread.Text(b, "kernel"), KernelSHA256: ctyread.Text(b, "kernel_sha256"),
			Initrd: ctyread.Text(b, "initrd"), InitrdSHA256: ctyread.Text(b, "initrd_sha256"),
			Cmdline: ctyread.Text(b, "cmdline"),
		}
	}
	if c := ctyread.KnownAttr(v, "cloud_init"); c != cty.NilVal {
		vm.CloudInit = &CloudInit{UserData: optionalText(c, "user_data"), NetworkConfig: optionalText(c, "network_config")}
	}
	var err error
	if vm.Disks, err = DecodeDisks(ctyread.Attr(v, "additional_disk")); err != nil {
		return vm, err
	}
	vm.MountPoints = decodeMountPoints(ctyread.Attr(v, "additional_disk"))
	if vm.Interfaces, err = decodeInterfaces(ctyread.Attr(v, "network_interface")); err != nil {
		return vm, err
	}
	vm.Forwards, err = DecodeForwards(ctyread.Attr(v, "port_forward"))
	return vm, err
}

// DecodeImage reads the image of a vm; nil: it has none.
func DecodeImage(v cty.Value) *Image {
	i := ctyread.KnownAttr(v, "image")
	if i == cty.NilVal {
		return nil
	}
	return &Image{Source: ctyread.Text(i, "source"), SHA256: strings.ToLower(ctyread.Text(i, "sha256"))}
}

// DecodeLogin reads the SSH login of a vm.
func DecodeLogin(v cty.Value) Login {
	ssh := ctyread.Attr(v, "ssh")
	return Login{
		User: ctyread.Text(ssh, "user"), Identity: ctyread.Text(ssh, "identity"), HostKey: ctyread.Text(ssh, "host_key"),
		AuthorizedKeys: Lines(ctyread.Attr(ssh, "authorized_keys")),
	}
}

// Lines returns the known texts of a list, each without white space around it.
func Lines(list cty.Value) []string {
	var all []string
	for _, line := range ctyread.List(list) {
		if ctyread.Known(line) {
			all = append(all, strings.TrimSpace(line.AsString()))
		}
	}
	return all
}

// decodeTexts reads a map of strings. It leaves out what is not known yet.
func decodeTexts(v cty.Value) map[string]string {
	if !ctyread.Known(v) {
		return nil
	}
	var all map[string]string
	for name, value := range v.AsValueMap() {
		if !ctyread.Known(value) {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = value.AsString()
	}
	return all
}

// decodeMounts reads the mounts of a vm, in order. It leaves out a mount whose paths are not known yet.
func decodeMounts(v cty.Value) []Mount {
	var all []Mount
	for _, e := range ctyread.List(v) {
		source, target := ctyread.Attr(e, "source"), ctyread.Attr(e, "target")
		if source == cty.NilVal || !source.IsKnown() || target != cty.NilVal && !target.IsKnown() {
			continue
		}
		all = append(all, Mount{Source: ctyread.Text(e, "source"), Target: ctyread.Text(e, "target"), Writable: ctyread.True(e, "writable")})
	}
	return all
}

// DecodeDisks reads the additional disks of a vm, in order. It leaves out a disk that is not
// known yet.
func DecodeDisks(v cty.Value) ([]spec.Address, error) {
	var all []spec.Address
	for _, e := range ctyread.List(v) {
		disk := ctyread.Text(e, "disk")
		if disk == "" && !ctyread.Attr(e, "disk").IsKnown() {
			continue
		}
		a, err := spec.ParseAddress(disk)
		if err != nil || a.Kind != spec.Disk {
			return nil, fmt.Errorf("additional_disk.disk = %q is no disk of this spec", disk)
		}
		for _, other := range all {
			if other == a {
				return nil, fmt.Errorf("additional_disk: %s is attached twice", a)
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// decodeMountPoints reads the paths at which the guest mounts its additional disks.
func decodeMountPoints(v cty.Value) map[spec.Address]string {
	var all map[spec.Address]string
	for _, e := range ctyread.List(v) {
		a, err := spec.ParseAddress(ctyread.Text(e, "disk"))
		if at := ctyread.Text(e, "mount_point"); err == nil && at != "" {
			if all == nil {
				all = map[spec.Address]string{}
			}
			all[a] = at
		}
	}
	return all
}

// DecodeForwards reads the forwarded ports of a vm. It leaves out a port whose place on the
// host is not known yet; the guest's port may be 0 then.
func DecodeForwards(v cty.Value) ([]Forward, error) {
	var all []Forward
	for _, e := range ctyread.List(v) {
		if !knowsHost(e) {
			continue
		}
		f := Forward{Guest: uint16(ctyread.Uint(e, "guest")), HostIP: ctyread.Text(e, "host_ip"), Protocol: ctyread.Text(e, "protocol")}
		if host := ctyread.Text(e, "host"); host != "" && host != autoPort {
			port, err := strconv.ParseUint(host, 10, 16)
			if err != nil || port == 0 {
				return nil, fmt.Errorf("port_forward.host = %q is neither %q nor a port", host, autoPort)
			}
			f.Host = uint16(port)
			for _, taken := range PortClaims(all) {
				if f.Claim().Overlaps(taken) {
					return nil, fmt.Errorf("port_forward: %s is forwarded twice", f.Claim().Key)
				}
			}
		}
		all = append(all, f)
	}
	return all, nil
}

// knowsHost reports whether it is known where a forwarded port listens on the host.
func knowsHost(forward cty.Value) bool {
	for _, name := range []string{"host", "host_ip", "protocol"} {
		if a := ctyread.Attr(forward, name); a == cty.NilVal || !a.IsKnown() {
			return false
		}
	}
	return true
}

func optionalText(v cty.Value, name string) *string {
	if a := ctyread.KnownAttr(v, name); a != cty.NilVal && a.Type() == cty.String {
		text := a.AsString()
		return &text
	}
	return nil
}
