// Package nocloud writes the seed of a guest that cloud-init sets up: a small
// CD-ROM with what the NoCloud source reads (cloud-init's documentation,
// reference/datasources/nocloud). The user's data stays as it is; the part that
// lets vmctl in is joined to it.
package nocloud

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
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

// Access describes the login to a guest: the user, the authorized keys and the host key.
type Access struct {
	User        string   // made if there is none, and may become root by sudo
	Authorized  string   // line of authorized_keys
	Others      []string // more of them
	Former      []string // lines that a guest that was set up before has to lose
	HostPrivate string   // ed25519, in OpenSSH's format
	HostPublic  string   // line of the .pub file
	// Again is for a guest that was set up with other keys: it gets these at its
	// next start, though it is the same instance. They are written at every start
	// that finds them in the seed.
	Again bool
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

// cloudConfig is the first line of a configuration of cloud-init.
const cloudConfig = "#cloud-config"

// merge tells cloud-init how to join vmctl's part to the parts before it: lists grow,
// and if both set a value, the user's value stands.
type merge struct {
	Name     string   `json:"name"`
	Settings []string `json:"settings"`
}

type config struct {
	MergeHow    []merge           `json:"merge_how"`
	BootCmd     [][]string        `json:"bootcmd,omitempty"`
	SSHKeys     map[string]string `json:"ssh_keys,omitempty"`
	DisableRoot *bool             `json:"disable_root,omitempty"`
	Authorized  []string          `json:"ssh_authorized_keys,omitempty"`
	Users       []any             `json:"users,omitempty"`
}

type user struct {
	Name       string   `json:"name"`
	Sudo       string   `json:"sudo"`
	Shell      string   `json:"shell"`
	LockPasswd bool     `json:"lock_passwd"`
	Authorized []string `json:"ssh_authorized_keys"`
}

// access returns the part of the user data that lets vmctl in.
func (s Seed) access() (string, error) {
	a := s.Access
	c := config{
		MergeHow: []merge{
			{"list", []string{"append"}}, {"dict", []string{"no_replace", "recurse_list"}}, {"str", []string{}},
		},
	}
	if a.Again {
		c.BootCmd = [][]string{{"sh", "-c", a.rekey()}}
		return c.text()
	}
	c.SSHKeys = map[string]string{"ed25519_private": a.HostPrivate, "ed25519_public": strings.TrimSpace(a.HostPublic)}
	if a.User == "root" {
		no := false
		c.DisableRoot, c.Authorized = &no, a.lines()
	} else {
		if !namesUsers.MatchString(s.UserData) { // a list of users is the whole list, unless it says otherwise
			c.Users = append(c.Users, "default")
		}
		c.Users = append(c.Users, user{
			Name: a.User, Sudo: "ALL=(ALL) NOPASSWD:ALL", Shell: "/bin/bash", LockPasswd: true, Authorized: a.lines(),
		})
	}
	return c.text()
}

// lines returns the lines of authorized_keys.
func (a *Access) lines() []string { return append([]string{a.Authorized}, a.Others...) }

func (c config) text() (string, error) {
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return "", err
	}
	return cloudConfig + "\n" + string(text) + "\n", nil
}
