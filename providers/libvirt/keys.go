package libvirt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/lockfile"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// keyring holds the keys of a vm: the public keys that may log in, and the guest's host key.
type keyring struct {
	Authorized  string   // authorized_keys line
	Others      []string // further authorized_keys lines, of other people
	HostPublic  string
	HostPrivate []byte
}

// The files of one vm's folder under the project's keys.
const (
	identityName   = "id_ed25519"
	hostKeyName    = "ssh_host_ed25519_key"
	knownHostsName = "known_hosts"
)

// keyFiles holds the paths of the keys of one vm on this machine.
type keyFiles struct {
	folder   string   // named by the object's ID
	earlier  string   // the folder that an older vmctl named by the object's name; "": none
	identity string   // private key
	own      bool     // the identity is a pair of vmctl's own
	others   []string // lines of authorized_keys
}

func (p *Provider) keyFiles(id, name string, l machine.Login) keyFiles {
	k := keyFiles{folder: p.keyFolder(id), own: l.Identity == "", others: l.AuthorizedKeys}
	if earlier := p.keyFolder(name); id != name && machine.CheckName(name) == nil && exists(earlier) && !exists(k.folder) {
		k.earlier = earlier
	}
	switch {
	case k.own:
		k.identity = k.path(identityName)
	case filepath.IsAbs(l.Identity):
		k.identity = l.Identity
	default:
		k.identity = filepath.Join(p.settings.Files, l.Identity)
	}
	return k
}

// keyFolder returns the folder of the keys of an object. An ID, and a name that passes
// machine.CheckName, are one path element each.
func (p *Provider) keyFolder(id string) string { return filepath.Join(p.settings.Keys, id) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// path returns the path of a file: in the earlier folder, until a step has moved that.
func (k keyFiles) path(name string) string { return filepath.Join(cmp.Or(k.earlier, k.folder), name) }

// read returns the public keys. If the guest's host key was never on this machine, it uses
// pinned instead. It writes nothing.
func (k keyFiles) read(pinned string) (keyring, error) {
	ring := keyring{HostPublic: pinned, Others: k.others}
	var err error
	if ring.Authorized, err = sshx.PublicKey(k.identity); err != nil {
		return ring, err
	}
	if host, err := sshx.PublicKey(k.path(hostKeyName)); err == nil || pinned == "" {
		ring.HostPublic = host
		return ring, err
	}
	return ring, nil
}

// drop removes the keys that vmctl made.
func (k keyFiles) drop() error {
	var errs []error
	for _, name := range []string{identityName, identityName + ".pub", hostKeyName, hostKeyName + ".pub"} {
		if err := os.Remove(k.path(name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// lacking returns the reason why this machine cannot log into a guest with that digest of its
// keys; "": it can.
func (k keyFiles) lacking(digest, pinned string) string {
	ring, err := k.read(pinned)
	switch {
	case !exists(k.identity):
		return k.identity + " is missing"
	case err != nil:
		return err.Error()
	case ring.digest() != digest:
		return "it has other keys than those in " + cmp.Or(k.earlier, k.folder)
	}
	if err := sshx.CheckMode(k.identity); err != nil {
		return err.Error()
	}
	return ""
}

// keyWait is the time that a writer of keys waits for another writer. To write keys takes
// milliseconds: after half a minute, something is wrong.
const keyWait = 30 * time.Second

// holdKeys locks the keys of the project against other writers until release is called. The
// lock is a file beside the folder of keys, since the keys of a vm are removed with it. A
// step that is told to end finishes its keys first.
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

// ensure makes the missing keys and pins the host key. It removes half-written files of a run
// that was killed, and moves the folder of an older vmctl. It replaces keys with the digest
// old.
func (p *Provider) ensure(ctx context.Context, id, name string, l machine.Login, old string) (ring keyring, err error) {
	release, err := p.holdKeys(ctx)
	if err != nil {
		return ring, err
	}
	defer func() { err = errors.Join(err, release()) }()
	k := p.keyFiles(id, name, l) // another process may have moved the folder until now
	if k.earlier != "" {
		if err := os.Rename(k.earlier, k.folder); err != nil {
			return ring, fmt.Errorf("move the keys of %s: %w", name, err)
		}
		k = p.keyFiles(id, name, l)
	}
	for _, file := range []string{identityName, identityName + ".pub", hostKeyName, hostKeyName + ".pub", knownHostsName} {
		if err := atomicfile.Clean(k.path(file)); err != nil {
			return ring, err
		}
	}
	if before, err := k.read(""); err == nil && old != "" && before.digest() == old {
		if err := k.drop(); err != nil {
			return ring, err
		}
	}
	ring.Others = k.others
	if k.own {
		ring.Authorized, err = sshx.EnsureKey(k.identity, "vmctl "+name)
	} else {
		ring.Authorized, err = sshx.PublicKey(k.identity)
	}
	if err != nil {
		return ring, err
	}
	host := k.path(hostKeyName)
	if ring.HostPublic, err = sshx.EnsureKey(host, name); err != nil {
		return ring, err
	}
	if ring.HostPrivate, err = os.ReadFile(host); err != nil {
		return ring, fmt.Errorf("read the host key: %w", err)
	}
	if l.HostKey == machine.HostKeyAcceptNew {
		return ring, nil
	}
	return ring, sshx.Pin(k.path(knownHostsName), name, ring.HostPublic)
}

// keys returns the wanted keys of the step's guest. A guest keeps its keys, unless the step
// says otherwise. If they are not on this machine, the keyring is empty, and no file with the
// keys in it can be written.
func (j *job) keys(ctx context.Context) (keyring, error) {
	k := j.keyFiles(string(j.Object), j.Name, j.want.SSH)
	had, _ := j.hasKeys()
	which, old := machine.ArgsOf(j.Step).Keys, ""
	switch {
	case had == "", which == machine.KeysGiven:
	case which == machine.KeysNew:
		old = had
	case which == machine.KeysSame && !j.hasOwn(k, machine.DecodeLogin(j.Prior).AuthorizedKeys) && !j.hasOwn(k, k.others):
		return keyring{}, j.elsewhere("what its guest is to get")
	case which == machine.KeysKept && !j.hasOwn(k, k.others):
		return keyring{}, nil
	}
	return j.ensure(ctx, string(j.Object), j.Name, j.want.SSH, old)
}

// hasOwn reports whether the step's guest has the keys that vmctl keeps on this machine,
// together with those of others.
func (j *job) hasOwn(k keyFiles, others []string) bool {
	had, hostKey := j.hasKeys()
	k.others = others
	ring, err := k.read(hostKey)
	return err == nil && ring.digest() == had && exists(k.path(hostKeyName))
}

// keysAreWanted reports whether the step's guest has the wanted keys.
func (j *job) keysAreWanted() bool {
	had, hostKey := j.hasKeys()
	switch machine.ArgsOf(j.Step).Keys {
	case machine.KeysNew:
		return false
	case machine.KeysGiven, machine.KeysSame:
		ring, err := j.keyFiles(string(j.Object), j.Name, j.want.SSH).read(hostKey)
		return err == nil && ring.digest() == had
	case machine.KeysKept:
		return had != ""
	default:
		panic("unknown keys " + string(machine.ArgsOf(j.Step).Keys))
	}
}

// hasKeys returns the digest of the guest's keys and its host key, from the mark; "": the
// guest has none, or they are unknown.
func (j *job) hasKeys() (digest, hostKey string) {
	o := j.seen.mark()
	return o.Boot.Keys, o.HostKey
}

// waysToKeys lists two ways to change a guest whose keys are not on this machine.
func waysToKeys(a spec.Address) []providers.Advice {
	return slices.Concat(
		providers.Say("run vmctl where the keys are: with the data directory that made them"),
		providers.SayVmctl("or give it new ones: ", "vm", "rekey", a.String()),
	)
}

// elsewhere returns the failure to write a file that holds the guest's keys.
func (j *job) elsewhere(what string) error {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "no_keys",
		Next: waysToKeys(j.Address),
		Err:  fmt.Errorf("%s %s: %s holds its keys, which are not on this machine", j.Op, j.Address, what),
	}
}

// digest returns a digest of the public keys, which identifies the keyring.
func (k keyring) digest() string {
	h := sha256.New()
	for _, line := range []string{k.Authorized, k.HostPublic} {
		fields := strings.Fields(line)
		fmt.Fprintf(h, "%s\n", strings.Join(fields[:min(2, len(fields))], " "))
	}
	for _, line := range k.Others {
		fmt.Fprintf(h, "%s\n", line)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// authorized returns the authorized_keys lines of everybody who may log in.
func (k keyring) authorized() string {
	return strings.Join(append([]string{k.Authorized}, k.Others...), "\n") + "\n"
}

// isHere reports whether the keys are on this machine.
func (k keyring) isHere() bool { return len(k.HostPrivate) > 0 }

// hostKey returns the public host key without its comment.
func (k keyring) hostKey() string {
	fields := strings.Fields(k.HostPublic)
	return strings.Join(fields[:min(2, len(fields))], " ")
}

// archive returns the boot archive that brings the keys into the guest.
func (k keyring) archive() ([]byte, error) {
	return bootArchive([]archiveFile{
		{Name: "vmctl", Mode: folderMode},
		{Name: "vmctl/authorized_keys", Mode: secretMode, Content: []byte(k.authorized())},
		{Name: "vmctl/" + hostKeyName, Mode: secretMode, Content: k.HostPrivate},
	})
}

// forgetKeys removes the folder of a vm's keys.
func (p *Provider) forgetKeys(ctx context.Context, id, name string) (err error) {
	if k := p.keyFiles(id, name, machine.Login{}); !exists(cmp.Or(k.earlier, k.folder)) {
		return nil
	}
	release, err := p.holdKeys(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	k := p.keyFiles(id, name, machine.Login{})
	if err := os.RemoveAll(cmp.Or(k.earlier, k.folder)); err != nil {
		return fmt.Errorf("remove the keys of %s: %w", name, err)
	}
	return nil
}
