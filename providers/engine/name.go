package engine

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/pattern"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// validName matches the names of containers, volumes and networks that every engine takes. Names go into
// the paths of requests, which the client does not escape.
var validName = pattern.New(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,199}$`)

// idBytes is the length of an engine's own IDs, which it writes in hexadecimal digits.
const idBytes = 32

// isID reports whether a text is an engine's own ID of a container. IDs go into the paths of requests.
func isID(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == idBytes
}

// engineName returns the name that an engine takes for a name that vmctl has chosen: a name of a for_each
// has characters that no engine takes. Different names stay different, and a name of an engine stays as it is.
func engineName(name string) string {
	if validName.MatchString(name) {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_':
			b.WriteByte(c)
		default:
			b.WriteByte('-')
		}
	}
	return b.String() + "." + guard.Short(name)
}

// canonical returns the full name of an image: registry, repository and tag. "" for a text that is none.
func canonical(ref string) string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return ""
	}
	return reference.TagNameOnly(named).String()
}

// check returns the flaws of a want that no engine takes.
func check(kind spec.Kind, want cty.Value) []spec.Flaw {
	var all []spec.Flaw
	if ref := ctyread.Text(want, "ref"); kind == spec.Image && ref != "" && canonical(ref) == "" {
		all = append(all, spec.Flaw{Path: "ref", Summary: "Not an image", Detail: fmt.Sprintf("%q is not the name of an image. Write one like docker.io/library/busybox:1.36.", ref)})
	}
	if kind == spec.Image && isBuilt(want) && ctyread.Known(ctyread.Attr(want, "archive")) {
		all = append(all, spec.Flaw{Path: "build", Summary: "Two sources", Detail: "An image is built or loaded from an archive, not both. Remove `archive` or the block `build`."})
	}
	if name := ctyread.Text(want, "name"); name != "" && !validName.MatchString(name) {
		all = append(all, spec.Flaw{Path: "name", Summary: "Not a name for an engine", Detail: fmt.Sprintf("%q is no name for an engine. Write two or more letters, digits, `_`, `.` and `-`, beginning with a letter or a digit.", name)})
	}
	return all
}

// checkEngine returns the flaws of an engine that could never be connected to as wanted.
func checkEngine(_ spec.Kind, want cty.Value) []spec.Flaw {
	block := ctyread.Attr(want, "docker_context")
	if !ctyread.Known(block) {
		return nil
	}
	var all []spec.Flaw
	if name := ctyread.Text(block, "name"); name != "" && (name == defaultContext || !validContext.MatchString(name)) {
		all = append(all, spec.Flaw{
			Path: "docker_context.name", Summary: "Not a name of a docker context",
			Detail: fmt.Sprintf("%q is no name of a docker context. Write two or more letters, digits, `_`, `.`, `+` and `-`, beginning with a letter or a digit, and not %q.", name, defaultContext),
		})
	}
	return all
}
