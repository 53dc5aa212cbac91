package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Unit is the unit in which people read and write an attribute's canonical number.
type Unit string

// Units of attributes. Plain has none; a size is kept in bytes and written with
// IEC units; a duration is kept in seconds and written like "1m30s".
const (
	Plain    Unit = ""
	Bytes    Unit = "bytes"
	Duration Unit = "duration"
)

// Form is a rule for the text of a string attribute.
type Form string

// Forms of attributes.
const (
	AnyText       Form = ""
	OneLine       Form = "line"          // no control characters
	ObjectName    Form = "name"          // a name that every system accepts
	UserName      Form = "user"          // a login name
	IPAddress     Form = "ip"            // an IPv4 or IPv6 address
	HostPort      Form = "port"          // "auto", or a port in decimal; a spec may write a number
	IPv4Address   Form = "ipv4"          // an IPv4 address
	AutoAddress   Form = "auto ipv4"     // "auto", or an IPv4 address
	Subnet        Form = "cidr"          // an IPv4 prefix whose host bits are zero
	IPv4Addresses Form = "ipv4 list"     // a list of IPv4 addresses
	Subnets       Form = "cidr list"     // a list of IPv4 prefixes whose host bits are zero
	WhenBusy      Form = "busy"          // "block", or "wait" and a duration
	Ceilings      Form = "ceilings"      // a map from attribute paths to one of OneOf
	Paths         Form = "paths"         // attribute paths as keywords, [memory, boot.cmdline], or all
	SHA256        Form = "sha256"        // 64 hexadecimal digits
	FileOrURL     Form = "source"        // a path, relative to the spec's folder, or an http or https URL; only making needs it
	GuestPath     Form = "path"          // an absolute path in the guest
	HostFolder    Form = "folder"        // a folder of this host: an absolute path, or one relative to the spec's folder or to "~/"
	BuildContext  Form = "context"       // a folder of this host whose content counts, as a build gets it: an absolute path, or one relative to the spec's folder
	InnerPath     Form = "inner"         // the path of a file in a folder, with slashes
	Variables     Form = "env"           // a map from names of environment variables
	VariableNames Form = "env names"     // a list of names of environment variables; NAME* is all that begin with NAME
	MountOptions  Form = "mount options" // a list of options of sshfs
	Members       Form = "members"       // a map from resources of a Terraform module to IDs; a list of them leaves the IDs empty
	JSONObject    Form = "json"          // an object as JSON text; its canonical form has sorted keys and no spaces
	YAML          Form = "yaml"          // a mapping as YAML text; its canonical form is canonical YAML. Or the place of one, as Lima writes it: template:docker
)

// Attr is the shape of one attribute.
type Attr struct {
	Name     string
	Type     cty.Type  // of the canonical value; a size or a duration is a cty.Number
	Unit     Unit      // how a spec writes it
	Form     Form      // what a string must look like
	Default  cty.Value // canonical; cty.NilVal: none, the attribute is null when left out
	Required bool
	With     string // the attribute beside it without which it must not stand; then neither Required nor Default counts; "": none
	Meta     bool   // read while resources are made of blocks; neither Want nor Policy
	Computed bool   // never written in a spec; readable by references once it is known
	Derived  bool   // set by spec itself, such as the digest of a file
	DigestOf string // Derived: the file attribute beside it whose SHA-256 it holds; "": it holds the place of a Labelled block, from 1
	File     bool   // a path, relative to the spec's folder, of a file that must be readable
	Private  bool   // File: some machines may lack it; an existing object does without it
	Own      bool   // the resource's own address, which only references see
	Refers   []Kind // written as a reference to a resource of one of these kinds; the value is its address as text
	Known    bool   // must be known before anything is observed
	Policy   bool   // how vmctl treats the object, no part of the object
	// Sensitive says that the value may be sensitive: a string, or a collection of strings. Records then
	// hold a digest of the whole value (state.DigestKey).
	Sensitive bool
	Public    string   // not Sensitive: why the value cannot be secret, a clause; "": records and plans hold it
	OneOf     []string // allowed strings; nil: any
	Min       int64    // smallest number, in canonical units; 0: none is negative
	Max       int64    // largest number, in canonical units; 0: any
	Digits    int      // the most digits after the decimal point of a number, which is above 0 then; 0: it is whole
	Reach     Reach    // what its value reaches beyond the resource; "": nothing
	Doc       string   // one sentence
}

// Block is the shape of one block. A block that is not Repeated is an object or
// null, a Repeated one is a list of objects, a Labelled one an object with an object for each
// label, or null.
type Block struct {
	Name          string
	Repeated      bool
	Labelled      bool   // Repeated: each has a label of its own, which names it
	Optional      bool   // an absent block stays null; otherwise it is filled with its attributes' defaults
	Policy        bool   // every attribute of it is policy
	Shorthand     string // the attribute that `NAME = value` sets, in place of a block; "": there is no such form
	DefaultedWith string // Optional: an absent block is filled all the same where the block of this name is not null
	ConflictsWith string // the name of a block that excludes this one
	Needs         string // Optional: the name of the attribute beside it without which it has no effect
	With          string // the attribute beside it without which it must not stand; "": none
	Attrs         []Attr
	Blocks        []Block
	In            *In      // of a kind: where its objects live; nil: in a system of their own
	Inapplicable  *Setting // of a kind: while an object has this setting, nothing inside of it is managed; nil: it always is
	Ceiling       string   // of a kind: the most disruptive way in which an edit may apply without lifecycle.on_change; "": replace
	Work          bool     // of a kind: people work in its objects, which may hold work that exists nowhere else
	Conditions    []string // of a kind: the conditions that its resources have, the one that others rest on first
	Reach         Reach    // what the block reaches beyond the resource; "": nothing
	Later         []string // names of attributes and blocks that the language has and this build has not
	Version       int      // of a kind: how often the form of its recorded values changed in a way that other builds cannot read; from 1
	Doc           string

	fixed func() *fixed // nil: the shape is not in a table of shapes
}

// In says where the objects of a kind live: inside of another object, or on this host.
type In struct {
	Attr     string // names that object, as a reference; "": they are on this host, always
	Kinds    []Kind // its kind is one of these
	Optional bool   // without Attr the object is on this host
	Outlives bool   // what is left of the object is kept when its resource goes: the record of a job
}

// Setting is an attribute with a text.
type Setting struct{ Attr, Value string }

// String returns the setting as a spec has it.
func (s Setting) String() string { return fmt.Sprintf("%s = %q", s.Attr, s.Value) }

// attr returns the attribute of that name.
func (b Block) attr(name string) (Attr, bool) {
	for _, a := range b.Attrs {
		if a.Name == name {
			return a, true
		}
	}
	return Attr{}, false
}

// block returns the nested block of that name.
func (b Block) block(name string) (Block, bool) {
	for _, nested := range b.Blocks {
		if nested.Name == name {
			return nested, true
		}
	}
	return Block{}, false
}

// Shape returns the shape of a kind of resource.
func Shape(kind Kind) (Block, bool) {
	b, ok := resourceShapes[kind]
	return b, ok
}

// InsideOf returns the kinds whose objects may be inside of objects of a kind.
func InsideOf(outer Kind) []Kind {
	var all []Kind
	for kind, shape := range resourceShapes {
		if shape.In != nil && slices.Contains(shape.In.Kinds, outer) {
			all = append(all, kind)
		}
	}
	slices.Sort(all)
	return all
}

// ProviderShape returns the shape of a type of provider.
func ProviderShape(typ string) (Block, bool) {
	b, ok := providerShapes[typ]
	return b, ok
}

// AttrAt returns the attribute at a dotted path of a kind of resource, such as "stop.grace",
// "port_forward[0].guest" or "provision.tools.script". It ignores brackets and labels, so that the
// path of an element finds its attribute.
func AttrAt(kind Kind, path string) (Attr, bool) {
	b, ok := resourceShapes[kind]
	if !ok {
		return Attr{}, false
	}
	steps := splitPath(path)
	for i, step := range steps {
		if b.Labelled && i == len(steps)-2 { // it is a label
			continue
		}
		if a, ok := b.attr(step); ok {
			return a, i == len(steps)-1
		}
		if b, ok = b.block(step); !ok {
			return Attr{}, false
		}
	}
	return Attr{}, false
}

// splitPath returns the names of a dotted path without the parts in brackets.
func splitPath(path string) []string {
	var steps []string
	var step strings.Builder
	quoted, depth := false, 0
	for _, r := range path {
		switch {
		case depth > 0 && r == '"':
			quoted = !quoted
		case quoted:
		case r == '[':
			depth++
		case r == ']' && depth > 0:
			depth--
		case depth > 0:
		case r == '.':
			steps = append(steps, step.String())
			step.Reset()
		default:
			step.WriteRune(r)
		}
	}
	return append(steps, step.String())
}

// Register adds a kind of resource to the language, with the attributes and blocks that every kind
// has, and returns it. Tests register kinds that users do not see, before they read any file.
func Register(shape Block) Kind {
	shape.Attrs = append(slices.Clone(shape.Attrs), ownAddress)
	shape.Blocks = append(slices.Clone(shape.Blocks), lifecycleBlock)
	resourceShapes[Kind(shape.Name)] = fix(shape)
	if !slices.Contains(rootBlocks, shape.Name) {
		rootBlocks = slices.Sorted(slices.Values(append(rootBlocks, shape.Name)))
	}
	return Kind(shape.Name)
}
