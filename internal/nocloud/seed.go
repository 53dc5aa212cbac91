// Package nocloud writes the seed of a guest that cloud-init sets up: a small CD-ROM for
// cloud-init's NoCloud source (its documentation, reference/datasources/nocloud). It keeps the
// user's data unchanged, and adds a part that gives vmctl a login.
package nocloud

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Seed holds the data with which cloud-init sets a guest up.
type Seed struct {
	InstanceID string // another one makes cloud-init set the guest up anew
	Hostname   string
	Access     *Access // nil: nobody is let in by it
	// UserData and NetworkConfig are the user's, as they are; "" is none. A guest
	// without a network configuration asks for addresses on its first card.
	UserData, NetworkConfig string
}

// textLimit limits each text of the user, in bytes. cloud-init has no limit for a seed on
// a disk. A user who needs more puts it into the image.
const textLimit = 1 << 20

// file is one file of the seed.
type file struct{ name, content string }

// files returns the files of the seed, sorted by name. The same seed gives the same
// bytes.
func (s Seed) files() ([]file, error) {
	meta, err := json.Marshal(map[string]string{"instance-id": s.InstanceID, "local-hostname": s.Hostname})
	if err != nil {
		return nil, err
	}
	user, err := s.userData()
	if err != nil {
		return nil, err
	}
	// JSON is YAML, and needs no rules of its own about what to quote.
	all := []file{{"meta-data", string(meta) + "\n"}}
	if s.NetworkConfig != "" {
		all = append(all, file{"network-config", s.NetworkConfig})
	}
	return append(all, file{"user-data", user}), nil
}

// Digest returns a digest of the seed's files, in hex: equal seeds have equal digests.
func (s Seed) Digest() (string, error) {
	files, err := s.files()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s %d\n%s", f.name, len(f.content), f.content)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// WithoutKeys returns the seed for a guest that has its keys: cloud-init takes it for
// the same instance, and keeps what it has set up.
func (s Seed) WithoutKeys() Seed {
	s.Access = nil
	return s
}

// userData returns the user's data, joined with the part that lets vmctl in.
func (s Seed) userData() (string, error) {
	if err := Check(s.UserData); err != nil {
		return "", err
	}
	if s.Access == nil {
		if s.UserData == "" {
			return cloudConfig + "\n{}\n", nil
		}
		return s.UserData, nil
	}
	own, err := s.access()
	if err != nil {
		return "", err
	}
	if s.UserData == "" {
		return own, nil
	}
	return join(partOf(s.UserData), part{kind: "text/cloud-config", text: own}), nil
}
