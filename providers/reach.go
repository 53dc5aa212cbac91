package providers

import "github.com/zclconf/go-cty/cty"

// Reacher is a provider whose VMs can be logged into over SSH.
type Reacher interface {
	// Reach says how to log into a VM that runs, as it was observed: by the login
	// that values hold, which are the spec's attributes or the record's. It connects
	// to nothing. An error says why nothing leads there.
	Reach(o Object, values cty.Value) (Login, error)
}

// Login is how to log into a VM, and how to know that it is the one.
type Login struct {
	Address      string // host name or IP address
	Port         int
	User         string
	IdentityFile string // private key, absolute
	Alias        string // the name under which the host key is known
	KnownHosts   string // file, absolute
	HostKey      string // the only one that is right, as authorized_keys has it; "": KnownHosts says it
	HostKeyFrom  string // who says so, for people
	AcceptNew    bool   // a host key that KnownHosts lacks is added to it; else it is refused
}
