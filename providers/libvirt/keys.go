package libvirt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/lockfile"
	"vmctl/internal/sshx"
)

// keyring is what a vm's guest and vmctl know each other by.
type keyring struct {
	Authorized  string // authorized_keys line
	HostPublic  string
	HostPrivate []byte
}

// The files of one vm's folder under the project's keys.
const (
	identityName   = "id_ed25519"
	hostKeyName    = "ssh_host_ed25519_key"
	knownHostsName = "known_hosts"
)

// keyFolder is the folder of the keys of the object of that name. The name fits
// namePattern: it is one path element.
func (p *Provider) keyFolder(name string) string { return filepath.Join(p.settings.Keys, name) }

func (p *Provider) identityFile(name string, l login) string {
	switch {
	case l.Identity == "":
		return filepath.Join(p.keyFolder(name), identityName)
	case filepath.IsAbs(l.Identity):
		return l.Identity
	default:
		return filepath.Join(p.settings.Files, l.Identity)
	}
}

// keyWait is how long who writes keys waits for another who does. That takes
// milliseconds: after half a minute, something is wrong.
const keyWait = 30 * time.Second

// holdKeys lets nobody else write keys of the project until they are released. The
// lock stands beside the folder of keys, for the keys of a vm go with it. A step
// that is told to end does so with its keys whole.
func (p *Provider) holdKeys(ctx context.Context) (release func() error, err error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("lock the keys: %w", err)
	}
	if err := os.MkdirAll(p.settings.Keys, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for keys: %w", err)
	}
	p.common.keys.Lock()
	held, err := lockfile.Acquire(context.WithoutCancel(ctx), lockfile.Request{
		Path: p.settings.Keys + ".lock", Wait: keyWait,
		Owner: lockfile.Owner{PID: os.Getpid(), Host: host, Command: "vmctl", Since: time.Now().UTC()},
	})
	if err != nil {
		p.common.keys.Unlock()
		return nil, err
	}
	return func() error {
		defer p.common.keys.Unlock()
		return held.Release()
	}, nil
}

// ensureKeys makes the keys that are missing and pins the host key. What a run
// left half written that was killed goes.
func (p *Provider) ensureKeys(ctx context.Context, name string, l login) (k keyring, err error) {
	release, err := p.holdKeys(ctx)
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, release()) }()
	for _, file := range []string{identityName, identityName + ".pub", hostKeyName, hostKeyName + ".pub", knownHostsName} {
		if err := atomicfile.Clean(filepath.Join(p.keyFolder(name), file)); err != nil {
			return k, err
		}
	}
	if l.Identity == "" {
		k.Authorized, err = sshx.EnsureKey(p.identityFile(name, l), "vmctl "+name)
	} else {
		k.Authorized, err = sshx.PublicKey(p.identityFile(name, l))
	}
	if err != nil {
		return k, err
	}
	host := filepath.Join(p.keyFolder(name), hostKeyName)
	if k.HostPublic, err = sshx.EnsureKey(host, name); err != nil {
		return k, err
	}
	if k.HostPrivate, err = os.ReadFile(host); err != nil {
		return k, fmt.Errorf("read the host key: %w", err)
	}
	if l.HostKey == hostKeyAcceptNew {
		return k, nil
	}
	return k, sshx.Pin(filepath.Join(p.keyFolder(name), knownHostsName), name, k.HostPublic)
}

// readKeys returns the public halves of the keys as they are. It writes nothing.
func (p *Provider) readKeys(name string, l login) (keyring, error) {
	var k keyring
	var err error
	if k.Authorized, err = sshx.PublicKey(p.identityFile(name, l)); err != nil {
		return k, err
	}
	k.HostPublic, err = sshx.PublicKey(filepath.Join(p.keyFolder(name), hostKeyName))
	return k, err
}

// digest identifies the keys by their public halves.
func (k keyring) digest() string {
	h := sha256.New()
	for _, line := range []string{k.Authorized, k.HostPublic} {
		fields := strings.Fields(line)
		fmt.Fprintf(h, "%s\n", strings.Join(fields[:min(2, len(fields))], " "))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// archive is what brings the keys into the guest.
func (k keyring) archive() ([]byte, error) {
	return bootArchive([]archiveFile{
		{Name: "vmctl", Mode: folderMode},
		{Name: "vmctl/authorized_keys", Mode: secretMode, Content: []byte(k.Authorized + "\n")},
		{Name: "vmctl/" + hostKeyName, Mode: secretMode, Content: k.HostPrivate},
	})
}

// forgetKeys removes the folder of a vm's keys.
func (p *Provider) forgetKeys(ctx context.Context, name string) (err error) {
	if !namePattern.MatchString(name) { // no folder has such a name
		return nil
	}
	if _, err := os.Lstat(p.keyFolder(name)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	release, err := p.holdKeys(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := os.RemoveAll(p.keyFolder(name)); err != nil {
		return fmt.Errorf("remove the keys of %s: %w", name, err)
	}
	return nil
}
