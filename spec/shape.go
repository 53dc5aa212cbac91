package spec

import "github.com/zclconf/go-cty/cty"

// Unit is how an attribute's canonical number is written for people.
type Unit string

// Units of attributes. Plain has none; a size is kept in bytes and written with
// IEC units; a duration is kept in seconds and written like "1m30s".
const (
	Plain    Unit = ""
	Bytes    Unit = "bytes"
	Duration Unit = "duration"
)

// Attr is the shape of one attribute.
type Attr struct {
	Name     string
	Type     cty.Type  // of the canonical value; a size or a duration is a cty.Number
	Unit     Unit      // how a spec writes it
	Default  cty.Value // canonical; cty.NilVal: none, the attribute is null when left out
	Required bool
	Computed bool     // never written in a spec; readable by references once it is known
	Derived  bool     // set by spec itself, such as the digest of a file
	File     bool     // a path, relative to the spec's folder, of a file that must be readable
	Policy   bool     // how vmctl treats the object, no part of the object
	OneOf    []string // allowed strings; nil: any
	Min      int64    // smallest number, in canonical units; 0: any
	Doc      string   // one sentence
}

// Block is the shape of one block. A block that is not Repeated is an object or
// null, a Repeated one is a list of objects.
type Block struct {
	Name     string
	Repeated bool
	Optional bool // an absent block stays null; otherwise it is filled with its attributes' defaults
	Policy   bool // every attribute of it is policy
	Attrs    []Attr
	Blocks   []Block
	Doc      string
}
