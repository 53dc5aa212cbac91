package libvirt

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"vmctl/internal/nocloud"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// scratchName is the folder in which a seed is put together, beside the keys.
const scratchName = "seed"

// ensureSeed returns m with the seed for the guest: a seed with keys until the guest has let
// vmctl in, and then a seed without keys. digest is the digest of the wanted keys; if they
// are not on this machine, k is empty.
func (j *job) ensureSeed(ctx context.Context, in pool, k keyring, digest string, m markedImage) (markedImage, error) {
	had, _ := j.hasKeys()
	if had == digest && m.Seed != "" {
		if there, err := j.isThere(ctx, m.Seed); there || err != nil {
			return m, err
		}
	}
	m.Settled = m.Settled && had == digest
	again := had != "" && had != digest // a guest that has other keys gets these at its next start
	s, err := j.seed()
	if err != nil {
		return m, err
	}
	if !m.Settled {
		if !k.isHere() {
			return m, j.elsewhere("its seed for cloud-init")
		}
		s.Access = &nocloud.Access{
			User: j.want.SSH.User, Authorized: k.Authorized, Others: k.Others, Former: j.formerOthers(),
			HostPrivate: string(k.HostPrivate), HostPublic: k.HostPublic, Again: again,
		}
	}
	m.Seed, err = j.uploadSeed(ctx, in, s)
	return m, err
}

// formerOthers returns the lines of authorized_keys that are in the record, but no longer in
// the spec.
func (j *job) formerOthers() []string {
	return slices.DeleteFunc(machine.DecodeLogin(j.Prior).AuthorizedKeys, func(line string) bool { return slices.Contains(j.want.SSH.AuthorizedKeys, line) })
}

// seed returns the texts for cloud-init, without keys. The spec's own network configuration is left as it is.
func (j *job) seed() (nocloud.Seed, error) {
	userData, network := j.want.CloudInit.Texts()
	if network == "" {
		var err error
		if network, err = networkConfig(string(j.Object), j.markedNetworks()); err != nil {
			return nocloud.Seed{}, err
		}
	}
	return nocloud.Seed{
		InstanceID: string(j.Object), Hostname: hostname(j.Address.Name, j.Address.Key),
		UserData: userData, NetworkConfig: network,
	}, nil
}

// hostname returns a guest's host name: the resource's name, and its key.
func hostname(name, key string) string {
	if key != "" {
		name += "-" + key
	}
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			c = '-'
		}
		b.WriteRune(c)
	}
	const limit = 63 // RFC 1035, 2.3.4
	word := strings.Trim(b.String(), "-")
	word = strings.Trim(word[:min(len(word), limit)], "-")
	if word == "" {
		return "guest"
	}
	return word
}

// uploadSeed puts a seed into a pool.
func (j *job) uploadSeed(ctx context.Context, to pool, s nocloud.Seed) (string, error) {
	digest, err := s.Digest()
	if err != nil {
		return "", j.badSeed(err)
	}
	text, err := s.ISO(filepath.Join(j.keyFolder(string(j.Object)), scratchName))
	if err != nil {
		return "", j.badSeed(err)
	}
	if keyed := j.settings.Digest; keyed != nil { // everybody can list the volumes
		digest = keyed(digest)
	}
	f := to.file(kindSeed.name(string(j.Object), digest))
	return f.path(), j.put(ctx, f, content{bytes: text})
}

func (j *job) badSeed(err error) error {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "seed", Err: fmt.Errorf("write the cloud-init seed of %s: %w", j.Address, err),
	}
}

// unkey removes the keys from the seed of a guest that let vmctl in: the guest has them.
func (j *job) unkey(ctx context.Context) (*guard.Outcome, error) {
	m, ok := j.ownImage()
	if !ok || bool(m.Settled) {
		return guard.Did(providers.AlreadyTrue, "its seed holds no keys"), nil
	}
	before := m.Seed
	had, err := j.locate(ctx, j.connection, before)
	if err != nil {
		return nil, fail(err, "find the seed of %s", j.Address)
	}
	if err := j.place(ctx); err != nil {
		return nil, err
	}
	s, err := j.seed()
	if err != nil {
		return nil, err
	}
	if m.Seed, err = j.uploadSeed(ctx, had.in, s); err != nil {
		return nil, err
	}
	m.Settled = true
	o := j.seen.mark()
	o.Image = m
	element, err := o.element()
	if err != nil {
		return nil, err
	}
	if err := j.edit(ctx, "change the seed of "+j.Name, func(d *libvirtxml.Domain) error {
		insert(d, before, m.Seed)
		return setOwner(d, element)
	}); err != nil {
		return nil, err
	}
	var evidence []string
	if j.seen.power.on() {
		if err := j.changeMedia(ctx, before, m.Seed); err != nil {
			evidence = append(evidence, "until it is restarted its CD-ROM has the keys: "+err.Error())
		}
	}
	if before != m.Seed {
		if _, err := had.remove(ctx, j.connection); err != nil {
			return nil, fail(err, "remove the seed with the keys of %s", j.Name)
		}
	}
	return guard.Did(providers.Done, append(evidence, "the guest has them: they are in no file of the pool any more")...), nil
}

// changeMedia puts another seed into the CD-ROM drive of a guest that runs.
func (j *job) changeMedia(ctx context.Context, before, seed string) error {
	existing, err := j.XML(ctx, j.seen.UUID, asRunning)
	if err != nil {
		return err
	}
	device, err := seedDevice(existing, before, seed)
	if err != nil || device == "" {
		return err
	}
	return j.ChangeMedia(ctx, j.seen.UUID, device)
}
