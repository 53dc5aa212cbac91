package providers

import "github.com/zclconf/go-cty/cty"

// Reacher is a provider whose VMs accept SSH logins.
type Reacher interface {
	// Reach returns the SSH login to a running VM, as it was observed. values holds the
	// spec's attributes or the record's, with the login in them. It connects to nothing. The
	// error gives the reason if no login is possible; a *NotYetError says that one may be soon.
	Reach(o Object, values cty.Value) (Login, error)
}

// Login describes an SSH login to a VM: address, user, key, and the host key that proves its
// identity.
type Login struct {
	Address      string // host name or IP address
	Port         int
	User         string
	IdentityFile string // private key, absolute
	Alias        string // the name under which the host key is known
	KnownHosts   string // file, absolute
	HostKey      string // the only valid host key, as a line of authorized_keys; "": KnownHosts decides
	HostKeyFrom  string // the source of HostKey, for people
	AcceptNew    bool   // a host key that KnownHosts lacks is added to it; false: it is refused
}
