package providertest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/sshx"
	"vmctl/internal/yamltext"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

func fixed(one, two cty.Value) func(*stage) [2]cty.Value {
	return func(*stage) [2]cty.Value { return [2]cty.Value{one, two} }
}

func numbers(one, two int64) func(*stage) [2]cty.Value {
	return fixed(cty.NumberIntVal(one), cty.NumberIntVal(two))
}

func seconds(one, two float64) func(*stage) [2]cty.Value {
	return fixed(cty.NumberFloatVal(one), cty.NumberFloatVal(two))
}

func texts(one, two string) func(*stage) [2]cty.Value {
	return fixed(cty.StringVal(one), cty.StringVal(two))
}

func triggers(text string) cty.Value {
	return cty.MapVal(map[string]cty.Value{"ca": cty.StringVal(text)})
}

func params(text string) cty.Value {
	return cty.MapVal(map[string]cty.Value{"VALUE": cty.StringVal(text)})
}

// templates are the template of the world with two different messages.
func templates(s *stage) [2]cty.Value {
	var all [2]cty.Value
	for i, message := range []string{"one", "two"} {
		doc := map[string]any{}
		if base := ctyread.Text(s.Want, "template"); base != "" {
			var err error
			if doc, err = yamltext.Parse(base); err != nil {
				s.t.Fatal(err)
			}
		}
		doc["message"] = message
		text, err := yamltext.Marshal(doc)
		if err != nil {
			s.t.Fatal(err)
		}
		all[i] = cty.StringVal(text)
	}
	return all
}

func freePorts(s *stage) [2]cty.Value {
	return [2]cty.Value{cty.StringVal(s.freePort()), cty.StringVal(s.freePort())}
}

// cmdlines are two command lines with which the world's kernel boots.
func cmdlines(s *stage) [2]cty.Value {
	line := ctyread.Text(ctyread.Attr(s.Want, "boot"), "cmdline")
	return [2]cty.Value{cty.StringVal(line + " vmctl.effect=1"), cty.StringVal(line + " vmctl.effect=2")}
}

// bootFiles returns the values for a boot file of the world: its own, and a copy with zeros at
// its end, which boots as well.
func bootFiles(name string) func(*stage) [2]cty.Value {
	return func(s *stage) [2]cty.Value {
		file := ctyread.Text(ctyread.Attr(s.Want, "boot"), name)
		if file == "" {
			file = name
		}
		content, err := os.ReadFile(s.file(file))
		if errors.Is(err, fs.ErrNotExist) {
			content = []byte("the content of " + name)
			s.write(file, content)
		} else if err != nil {
			s.t.Fatal(err)
		}
		s.write(file+"-two", append(content, 0, 0, 0, 0))
		return [2]cty.Value{cty.StringVal(file), cty.StringVal(file + "-two")}
	}
}

func images(s *stage) [2]cty.Value {
	return [2]cty.Value{cty.StringVal(s.Effects.Images[0]), cty.StringVal(s.Effects.Images[1])}
}

func digests(s *stage) [2]cty.Value {
	return [2]cty.Value{cty.StringVal(s.digest(s.Effects.Images[0])), cty.StringVal(s.digest(s.Effects.Images[1]))}
}

// identities are two private keys, which are made when they are missing.
func identities(s *stage) [2]cty.Value {
	for _, name := range []string{"identity-one", "identity-two"} {
		if _, err := sshx.EnsureKey(s.file(name), name); err != nil {
			s.t.Fatal(err)
		}
	}
	return [2]cty.Value{cty.StringVal("identity-one"), cty.StringVal("identity-two")}
}

// publicKeys are two lists of one public key each, of people who are no identity of the spec.
func publicKeys(s *stage) [2]cty.Value {
	var lists []cty.Value
	for _, name := range []string{"colleague-one", "colleague-two"} {
		line, err := sshx.EnsureKey(s.file(name), name)
		if err != nil {
			s.t.Fatal(err)
		}
		lists = append(lists, cty.ListVal([]cty.Value{cty.StringVal(line)}))
	}
	return [2]cty.Value{lists[0], lists[1]}
}

// file returns the path of a file of the spec.
func (s *stage) file(name string) string { return filepath.Join(s.Settings.Files, name) }

func (s *stage) write(name string, content []byte) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.file(name)), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.file(name), content, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// digest returns the SHA-256 of a file of the spec, in hex.
func (s *stage) digest(name string) string {
	s.t.Helper()
	content, err := os.ReadFile(s.file(name))
	if err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// baseOf returns the attributes from which the scenes of a kind begin.
func (s *stage) baseOf(kind spec.Kind) cty.Value {
	base := map[string]cty.Value{}
	switch kind { //nolint:exhaustive // scenes are of these kinds
	case spec.VM:
		base = s.Want.AsValueMap()
	case spec.Disk:
		base = s.Disks.Want.AsValueMap()
	case box.Kind, spec.Network, spec.Workspace:
	default:
		panic("unknown kind " + string(kind))
	}
	for name, t := range spec.WantType(kind).AttributeTypes() {
		if base[name] == cty.NilVal {
			base[name] = nothing(t)
		}
	}
	return cty.ObjectVal(base)
}

// nothing returns an absent value: an empty list or map, else null.
func nothing(t cty.Type) cty.Value {
	switch {
	case t.IsListType():
		return cty.ListValEmpty(t.ElementType())
	case t.IsMapType():
		return cty.MapValEmpty(t.ElementType())
	default:
		return cty.NullVal(t)
	}
}

// put returns v, of type t, with another value at a dotted path. It makes the blocks on the way,
// and the first element of a list.
func put(v cty.Value, t cty.Type, path string, value cty.Value) cty.Value {
	if t.IsListType() {
		element := cty.NilVal
		if all := ctyread.List(v); len(all) > 0 {
			element = all[0]
		}
		return cty.ListVal([]cty.Value{put(element, t.ElementType(), path, value)})
	}
	all := map[string]cty.Value{}
	for name, t := range t.AttributeTypes() {
		if all[name] = ctyread.Attr(v, name); all[name] == cty.NilVal {
			all[name] = nothing(t)
		}
	}
	name, rest, deeper := strings.Cut(path, ".")
	if deeper {
		all[name] = put(all[name], t.AttributeType(name), rest, value)
	} else {
		all[name] = value
	}
	return cty.ObjectVal(all)
}

// set returns a want with another value of an attribute. Beside the path of a file it sets the
// digest of the file.
func (s *stage) set(want cty.Value, e effect, value cty.Value) cty.Value {
	s.t.Helper()
	want = put(want, spec.WantType(e.kind), e.path, value)
	if a, _ := spec.AttrAt(e.kind, e.path+"_sha256"); a.Derived {
		want = put(want, spec.WantType(e.kind), e.path+"_sha256", cty.StringVal(s.digest(value.AsString())))
	}
	return want
}
