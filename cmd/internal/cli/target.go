package cli

import (
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/sshx"
)

// target is how to log into a VM: by the user and key of the files, else of the
// record, and by the host key that was pinned when it was made. Its keys are in
// a folder of the data directory that has the object's name.
func (a *app) target(s sight, v seen) (sshx.Target, error) {
	switch {
	case v.object == nil:
		return sshx.Target{}, errNoEndpoint
	case v.object.Unreadable["ssh_port"] != "":
		return sshx.Target{}, fmt.Errorf("its SSH port could not be read: %s", v.object.Unreadable["ssh_port"])
	case endpoint(v.object) == "":
		return sshx.Target{}, errNoEndpoint
	}
	if host := remote(v); host != "" {
		return sshx.Target{}, fmt.Errorf("its SSH is on the host %s alone, which this build does not reach into", host)
	}
	ssh := cty.NilVal
	switch {
	case v.resource != nil:
		ssh = attribute(v.resource.Want, "ssh")
	case v.record != nil:
		ssh = attribute(v.record.Values, "ssh")
	}
	keys := filepath.Join(s.project.dir, "keys", v.object.Name)
	t := sshx.Target{
		Address:      text(v.object.Attrs, "address"),
		Port:         number(v.object.Attrs, "ssh_port"),
		User:         text(ssh, "user"),
		IdentityFile: text(ssh, "identity"),
		Alias:        v.object.Name,
		KnownHosts:   filepath.Join(keys, "known_hosts"),
		AcceptNew:    text(ssh, "host_key") == "accept-new",
	}
	switch {
	case t.IdentityFile == "":
		t.IdentityFile = filepath.Join(keys, "id_ed25519")
	case !filepath.IsAbs(t.IdentityFile):
		t.IdentityFile = filepath.Join(s.project.config.Dir, t.IdentityFile)
	}
	if t.User == "" {
		t.User = "root"
	}
	return t, nil
}

// remote is the host on which the VM runs, "" for this one.
func remote(v seen) string {
	u, err := url.Parse(text(v.system.Settings, "uri"))
	if err != nil {
		return ""
	}
	return u.Hostname()
}
