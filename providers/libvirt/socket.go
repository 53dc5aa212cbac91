package libvirt

import (
	"fmt"
	"path/filepath"

	"vmctl/providers"
)

// maxSocketPath is the size of a socket's path in the system (bytes), with its closing zero
// (unix(7)).
const maxSocketPath = 108

// socketsFit fails if libvirt could not make QEMU's sockets. It is called before anything is
// made.
func (j *job) socketsFit() error {
	long := j.longSocket(j.Name)
	if long == "" {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "path_too_long", Seen: []string{long},
		Next: longSocketNext(),
		Err:  fmt.Errorf("define %s: the folder in which libvirt keeps QEMU's sockets has too long a path", j.Address),
	}
}

func longSocketNext() []providers.Advice {
	return providers.Say("set XDG_CONFIG_HOME to a folder with a shorter path", "or use the system's libvirt: uri = \"qemu:///system\"")
}

// longSocket describes the first of QEMU's sockets whose path would be too long, "" if none
// is.
func (p *Provider) longSocket(name string) string {
	if p.location.System || p.location.Remote != "" || p.location.Test {
		return ""
	}
	config := p.host.Getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(p.host.Getenv("HOME"), ".config")
	}
	// libvirt: a counter and the first 20 bytes of the name.
	socket := filepath.Join(config, "libvirt/qemu/lib", "domain-9999-"+name[:min(20, len(name))], "monitor.sock")
	if len(socket) < maxSocketPath {
		return ""
	}
	return fmt.Sprintf("%s has %d bytes, and a socket's path must have fewer than %d", socket, len(socket), maxSocketPath)
}
