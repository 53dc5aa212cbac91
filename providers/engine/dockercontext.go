package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/atomicfile"
	"vmctl/internal/pattern"
	"vmctl/providers"
	"vmctl/spec"
)

// contexts holds the contexts of Docker's client on this host: the engines that it can talk to by a name, and the one that it
// talks to now.
type contexts struct{ dir string }

// validContext matches the names that Docker's client takes. default is none that can be made.
var validContext = pattern.New(`^[a-zA-Z0-9][a-zA-Z0-9_.+-]+$`)

const (
	defaultContext = "default"
	defaultHost    = "unix:///var/run/docker.sock" // that the context default leads to
)

// contextFile is a context in its file. Docker's client keeps what others add to the metadata.
type contextFile struct {
	Name     string
	Metadata struct {
		Description string
		Vmctl       *contextMark `json:"vmctl,omitempty"`
	}
	Endpoints struct {
		Docker struct {
			Host          string
			SkipTLSVerify bool
		} `json:"docker"`
	}
}

// contextMark is the owner mark of a context.
type contextMark struct {
	ID      string `json:"id"` // the lineage
	Project string `json:"project"`
	Address string `json:"address"`
}

// isOf reports whether a context bears the mark of an address, or of an earlier one of the same object.
func (c contextFile) isOf(p providers.Project, bears func(spec.Address) bool) bool {
	m := c.Metadata.Vmctl
	if m == nil || m.ID != p.Lineage() {
		return false
	}
	a, err := spec.ParseAddress(m.Address)
	return err == nil && bears(a)
}

// folder returns the folder of a context.
func (c contexts) folder(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(c.dir, "contexts", "meta", hex.EncodeToString(sum[:]))
}

func (c contexts) path(name string) string { return filepath.Join(c.folder(name), "meta.json") }

// read returns a context. The error of one that does not exist is fs.ErrNotExist.
func (c contexts) read(name string) (contextFile, error) {
	var f contextFile
	text, err := atomicfile.Read(c.path(name))
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("read %s: %w", c.path(name), err)
	}
	return f, nil
}

// write makes a context, or replaces it. Nobody ever sees half of one, which would end every list of contexts.
func (c contexts) write(f contextFile) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.folder(f.Name), 0o755); err != nil { //nolint:gosec // as Docker's client makes it
		return err
	}
	return atomicfile.Write(c.path(f.Name), text, 0o644)
}

// remove removes a context.
func (c contexts) remove(name string) error {
	if err := atomicfile.Remove(c.path(name)); err != nil {
		return err
	}
	if err := os.Remove(c.folder(name)); err != nil && !errors.Is(err, fs.ErrNotExist) { // it has nothing else in it
		return err
	}
	return nil
}

// dockerConfig is the configuration of Docker's client.
type dockerConfig struct {
	text    []byte // nil: there is none
	current string // "": the default
}

func (c contexts) configPath() string { return filepath.Join(c.dir, "config.json") }

// config reads the configuration. It fails if that cannot be understood: then Docker's client uses the default.
func (c contexts) config() (dockerConfig, error) {
	text, err := atomicfile.Read(c.configPath())
	if errors.Is(err, fs.ErrNotExist) {
		return dockerConfig{}, nil
	}
	if err != nil {
		return dockerConfig{}, err
	}
	current, err := currentIn(text)
	if err != nil {
		return dockerConfig{}, fmt.Errorf("read %s: %w", c.configPath(), err)
	}
	return dockerConfig{text: text, current: current}, nil
}

// setCurrent makes a context the current one; "": the default. Everything else in the configuration stays as it is, with its
// mode and order, and where it is a link, the file that it leads to is replaced.
func (c contexts) setCurrent(now dockerConfig, name string) error {
	text, err := withCurrent(now.text, name)
	if err != nil {
		return err
	}
	path, mode := c.configPath(), fs.FileMode(0o600)
	switch real, err := filepath.EvalSymlinks(path); {
	case err == nil:
		path = real
		about, err := os.Stat(path)
		if err != nil {
			return err
		}
		mode = about.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, text, mode)
}

const currentKey = "currentContext"

// member is a member of a JSON object, by its place in the text.
type member struct {
	name       string
	value      json.RawMessage
	begin, end int // without commas and spaces around it
}

// members returns the members of the one JSON object in a text.
func members(text []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if begins, err := d.Token(); err != nil {
		return nil, err
	} else if begins != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	var all []member
	for d.More() {
		before := int(d.InputOffset())
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{begin: before + bytes.IndexByte(text[before:], '"')}
		m.name, _ = name.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		m.end = int(d.InputOffset())
		all = append(all, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows its end")
	}
	return all, nil
}

// findCurrent returns the members of a configuration and the index of the current context among them; -1: it has none.
func findCurrent(text []byte) (all []member, at int, err error) {
	if all, err = members(text); err != nil {
		return nil, 0, err
	}
	at = -1
	for i, m := range all {
		switch {
		case !strings.EqualFold(m.name, currentKey): // as Docker's client reads it
		case at >= 0:
			return nil, 0, errors.New("it has " + currentKey + " twice")
		default:
			at = i
		}
	}
	return all, at, nil
}

// currentIn returns the current context of a configuration; "": the default.
func currentIn(text []byte) (name string, err error) {
	all, at, err := findCurrent(text)
	if err != nil || at < 0 {
		return "", err
	}
	if err := json.Unmarshal(all[at].value, &name); err != nil {
		return "", fmt.Errorf("its %s is no text", currentKey)
	}
	return name, nil
}

// withCurrent returns the text of a configuration with another current context; "": without any.
func withCurrent(text []byte, name string) ([]byte, error) {
	if text == nil {
		text = []byte("{}\n")
	}
	all, at, err := findCurrent(text)
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	opened := bytes.IndexByte(text, '{') + 1
	switch {
	case name == "" && at < 0:
		return text, nil
	case name == "" && at > 0: // with the comma before it
		return splice(text, all[at-1].end, all[at].end, nil), nil
	case name == "" && len(all) > 1: // with the comma behind it
		return splice(text, all[0].begin, all[1].begin, nil), nil
	case name == "":
		return splice(text, all[0].begin, all[0].end, nil), nil
	case at >= 0:
		return splice(text, all[at].end-len(all[at].value), all[at].end, quoted), nil
	case len(all) == 0:
		return splice(text, opened, opened, fmt.Appendf(nil, "\n\t%q: %s\n", currentKey, quoted)), nil
	default:
		return splice(text, opened, opened, fmt.Appendf(nil, "\n\t%q: %s,", currentKey, quoted)), nil
	}
}

// splice returns a text with other bytes in place of some.
func splice(text []byte, begin, end int, with []byte) []byte {
	return slices.Concat(text[:begin], with, text[end:])
}
