package spec

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"vmctl/internal/pattern"
)

// Kind is a kind of resource: the type of its block.
type Kind string

// The kinds of resources.
const (
	VM        Kind = "vm"        // a virtual machine
	Disk      Kind = "disk"      // a disk that outlives the machines that use it
	Engine    Kind = "engine"    // a container engine
	Image     Kind = "image"     // an image of an engine
	Volume    Kind = "volume"    // a volume of an engine
	Network   Kind = "network"   // a network of an engine
	Container Kind = "container" // a container of an engine
	Workspace Kind = "workspace" // a branch of a git repository, checked out in a VM or on this host
	Job       Kind = "job"       // an agent or a command that runs in a workspace
)

// Address names one resource of a spec: its kind, its label and, for an
// instance of a for_each, its key. The zero Address names nothing.
//
// An Address is comparable, and its text form (`vm.web["a"]`) is what users
// type and what files hold.
type Address struct {
	Kind Kind
	Name string
	Key  string // "" for a resource without for_each; a key is never empty
}

// String returns the text form, which ParseAddress reads back.
func (a Address) String() string {
	switch {
	case a == Address{}:
		return ""
	case a.Key == "":
		return string(a.Kind) + "." + a.Name
	default:
		return string(a.Kind) + "." + a.Name + "[" + strconv.Quote(a.Key) + "]"
	}
}

// Block returns the address of the block: a without its key.
func (a Address) Block() Address { return Address{Kind: a.Kind, Name: a.Name} }

func (a Address) isZero() bool { return a == Address{} }

// Compare orders addresses by kind, name and key.
func (a Address) Compare(b Address) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
}

// MarshalText implements encoding.TextMarshaler.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Address) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*a = Address{}
		return nil
	}
	parsed, err := ParseAddress(string(text))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

var addressPattern = pattern.New(`^([a-z][a-z_]*)\.([A-Za-z_][A-Za-z0-9_-]*)(?:\[(.+)\])?$`)

// ParseAddress reads the text form of an address. It does not ask whether the
// kind or the resource exists.
func ParseAddress(text string) (Address, error) {
	m := addressPattern.FindStringSubmatch(text)
	if m == nil {
		return Address{}, fmt.Errorf("%q is not an address: write it like vm.dev or vm.web[\"a\"]", text)
	}
	a := Address{Kind: Kind(m[1]), Name: m[2]}
	if m[3] == "" {
		if strings.HasSuffix(text, "]") {
			return Address{}, fmt.Errorf("%q has an empty key", text)
		}
		return a, nil
	}
	key, err := strconv.Unquote(m[3])
	if err != nil || key == "" {
		return Address{}, fmt.Errorf("%q has a key that is not quoted: write it like %s[\"a\"]", text, a)
	}
	a.Key = key
	return a, nil
}
