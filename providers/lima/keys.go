package lima

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/lockfile"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/machine"
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

// keyWait is the time that a writer of keys waits for another one. To write keys takes milliseconds:
// after half a minute, something is wrong.
const keyWait = 30 * time.Second

// ensureUserKey makes the home's key pair, unless it is there: Lima makes it by a program, in two
// files one after the other, and takes a half-written one for whole. A private key that cannot be read
// is replaced as long as no instance trusts it.
func (j *job) ensureUserKey(ctx context.Context) (err error) {
	release, err := j.holdKeys(ctx)
	if err != nil {
		return fail(err, "make the key pair of %s", j.home)
	}
	defer func() { err = errors.Join(err, release()) }()
	path := j.userKey()
	for _, file := range []string{path, path + ".pub"} {
		if err := atomicfile.Clean(file); err != nil {
			return fail(err, "make the key pair of %s", j.home)
		}
	}
	_, err = sshx.EnsureKey(path, "lima")
	if err == nil {
		return nil
	}
	if used, listErr := j.trustsKey(); listErr != nil || used != "" {
		f := fail(err, "make the key pair of %s", j.home)
		f.Code = "keys"
		f.Seen = []string{"the instance " + used + " was made with a key of that name"}
		f.Next = providers.Say("put back the key that the instances let in: " + path)
		return f
	}
	if err := errors.Join(atomicfile.Remove(path), atomicfile.Remove(path+".pub")); err != nil {
		return fail(err, "make the key pair of %s", j.home)
	}
	if _, err := sshx.EnsureKey(path, "lima"); err != nil {
		return fail(err, "make the key pair of %s", j.home)
	}
	return nil
}

// trustsKey returns an instance with a root disk, which may let the home's key in; "": there is none.
func (p *Provider) trustsKey() (string, error) {
	names, err := p.names(p.home)
	for _, name := range names {
		if exists(p.path(name, rootName)) || exists(p.path(name, oldRoot)) {
			return name, err
		}
	}
	return "", err
}

// holdKeys locks the home's key pair against other writers of vmctl until release is called.
func (p *Provider) holdKeys(ctx context.Context) (release func() error, err error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("lock the keys: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(p.home, configDir), 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for keys: %w", err)
	}
	p.keys.Lock()
	held, err := lockfile.Acquire(context.WithoutCancel(ctx), lockfile.Request{
		Path: filepath.Join(p.home, configDir, ".vmctl.lock"), Wait: keyWait,
		Owner: lockfile.Owner{PID: os.Getpid(), Host: host, Command: "vmctl", Since: time.Now().UTC()},
	})
	if err != nil {
		p.keys.Unlock()
		return nil, err
	}
	return func() error {
		defer p.keys.Unlock()
		return held.Release()
	}, nil
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

// hostKey returns the host key of the guest: the one that its definition has, else a new one. It is a
// private key, and its public half as a line of authorized_keys.
func (j *job) hostKey() (private, public string, err error) {
	path := filepath.Join(j.keyFolder(j.Object), "ssh_host_ed25519_key")
	if j.seen != nil {
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

// forgetKeys removes what vmctl knows of the keys of an instance that is gone.
func (j *job) forgetKeys() error { return removeTree(j.keyFolder(j.Object)) }
