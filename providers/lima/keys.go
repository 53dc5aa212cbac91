package lima

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"vmctl/internal/atomicfile"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// userKey returns the private key that all instances of the home let in.
func (p *Provider) userKey() string { return filepath.Join(p.home, configDir, "user") }

// identity returns the private key to log in with.
func (p *Provider) identity(l machine.Login) string {
	if l.Identity == "" {
		return p.userKey()
	}
	return p.absolute(l.Identity)
}

// ensureUserKey makes the home's key pair, unless it is there: Lima makes it by a program, in two
// files one after the other, and takes a half-written one for whole. A private key that cannot be read
// is replaced as long as no instance trusts it.
func (j *job) ensureUserKey(ctx context.Context) error {
	err := j.locked(ctx, j.makeUserKey)
	if p := (*providers.Problem)(nil); err != nil && !errors.As(err, &p) {
		return fail(err, "make the key pair of %s", j.home)
	}
	return err
}

func (j *job) makeUserKey() error {
	path := j.userKey()
	for _, file := range []string{path, path + ".pub"} {
		if err := atomicfile.Clean(file); err != nil {
			return err
		}
	}
	_, err := sshx.EnsureKey(path, "lima")
	if err == nil {
		return nil
	}
	if used, listErr := j.trustsKey(); machine.ArgsOf(j.Step).Keys != machine.KeysNew && (listErr != nil || used != "") {
		f := fail(err, "make the key pair of %s", j.home)
		f.Code = "keys"
		f.Seen = []string{"the instance " + used + " was made with a key of that name"}
		f.Next = slices.Concat(
			providers.Say("put back the key that the instances let in: "+path),
			providers.SayVmctl("or give each of them new keys: ", "vm", "rekey", j.Address.String()),
		)
		return f
	}
	if err := errors.Join(atomicfile.Remove(path), atomicfile.Remove(path+".pub")); err != nil {
		return err
	}
	_, err = sshx.EnsureKey(path, "lima")
	return err
}

// trustsKey returns an instance with a root disk, which may let the home's key in; "": there is none.
func (p *Provider) trustsKey() (string, error) {
	names, err := p.names(p.home)
	for _, name := range names {
		if exists(p.path(name, rootName)) || exists(p.path(name, oldRoot)) || exists(p.path(name, wslDisk)) {
			return name, err
		}
	}
	return "", err
}

// authorized returns the lines of authorized_keys that a wanted VM is to have: the home's key, the
// spec's own, and those of other people.
func (j *job) authorized(ctx context.Context) ([]string, error) {
	if err := j.ensureUserKey(ctx); err != nil {
		return nil, err
	}
	line, err := sshx.PublicKey(j.userKey())
	if err != nil {
		return nil, err
	}
	all := []string{line}
	if j.want.SSH.Identity != "" {
		if line, err = sshx.PublicKey(j.identity(j.want.SSH)); err != nil {
			return nil, err
		}
		all = append(all, line)
	}
	return append(all, j.want.SSH.AuthorizedKeys...), nil
}

// hostKey returns the host key of the guest: the one that its definition has, else a new one, as if the step gives
// it new keys. It is a private key, and its public half as a line of authorized_keys.
func (j *job) hostKey() (private, public string, err error) {
	path := filepath.Join(j.keyFolder(j.Object), "ssh_host_ed25519_key")
	switch {
	case machine.ArgsOf(j.Step).Keys == machine.KeysNew:
		if err := errors.Join(atomicfile.Remove(path), atomicfile.Remove(path+".pub")); err != nil {
			return "", "", err
		}
	case j.seen != nil:
		if private = hostKeyIn(j.seen.doc); private != "" {
			public, err = sshx.PublicOf([]byte(private))
			return private, public, err
		}
	}
	if err := errors.Join(atomicfile.Clean(path), atomicfile.Clean(path+".pub")); err != nil {
		return "", "", err
	}
	if _, err := sshx.EnsureKey(path, j.Name); err != nil {
		return "", "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	public, err = sshx.PublicOf(text)
	return string(text), public, err
}

// checkKeys fails if the change gives new keys to a guest whose keys are not vmctl's.
func (j *job) checkKeys() error {
	if machine.ArgsOf(j.Step).Keys != machine.KeysNew || j.seen.made() {
		return nil
	}
	return keyless(j.Address, fmt.Sprintf("%s %s: vmctl did not make the instance %s, whose keys are its own", j.Op, j.Address, j.Name), nil)
}

// keyless returns the problem of new keys for a guest whose host key is not vmctl's.
func keyless(a spec.Address, reason string, more []providers.Advice) *providers.Problem {
	return providers.Refuse(reason, slices.Concat(
		providers.SayVmctl("to renew it inside of the guest: ", "vm", "exec", a.String(), "--", "sudo", "sh", "-c", "rm /etc/ssh/ssh_host_*; ssh-keygen -A"), more,
	))
}

// forgetKeys removes what vmctl knows of the keys of an instance that is gone.
func (j *job) forgetKeys() error { return removeTree(j.keyFolder(j.Object)) }
