// Package compose reads compose files: the services, networks and volumes that they declare, in one form for each of the
// forms that compose allows. A setting that has no place in a Project stays in it as a LeftOut, so that no caller drops it
// without knowing.
//
// One file is read, as `docker compose config` would read it: anchors, merge keys and variables are resolved. A file that
// includes or extends others is refused.
package compose

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"vmctl/internal/yamltext"
)

// Inputs are the surroundings of a compose file.
type Inputs struct {
	Folder  string            // the name of its folder, from which compose derives the project's name
	Environ map[string]string // variables of the environment
	DotEnv  string            // the text of the .env file beside it; "": there is none
	// ReadFile reads an env_file by its path in the compose file. Its error is fs.ErrNotExist if there is none.
	ReadFile func(path string) (string, error)
}

// Project is the content of a compose file.
type Project struct {
	Services []Service // by name
	Networks []Network // by name; with compose's default network if a service uses it
	Volumes  []Volume  // by name
	LeftOut  []LeftOut // settings of the whole file
}

// LeftOut is a setting of a compose file that a Project has no field for.
type LeftOut struct {
	Setting string // its path in its service, network or volume: "deploy.replicas"
	Text    string // its value as YAML
	Reason  string // a clause
}

// Service is a service of a compose file. A nil list or mapping says nothing.
type Service struct {
	Name, Image         string
	ContainerName       string
	Entrypoint, Command []string
	Env                 map[string]string
	EnvFiles            []string // whose variables Env has
	User, WorkingDir    string
	Hostname            string
	Labels              map[string]string
	Restart             string
	Memory              int64  // bytes; 0: no limit
	CPUs                string // a decimal number; "": no limit
	Ports               []Port
	Mounts              []Mount
	Networks            []Attachment // by network
	Healthcheck         *Healthcheck
	StopGrace           string // a duration
	DependsOn           []string
	LeftOut             []LeftOut
}

// Port is a published port.
type Port struct {
	Container, Host int64
	HostIP          string
	Protocol        string
}

// Mount is a named volume at a path.
type Mount struct {
	Volume, Target string
	ReadOnly       bool
}

// Attachment is a service's place in a network.
type Attachment struct {
	Network string
	Aliases []string // the name of the service first
}

// Healthcheck is a check of a service's health. An empty duration, and no retries, mean the default.
type Healthcheck struct {
	Command                        []string
	Interval, Timeout, StartPeriod string
	Retries                        int64
}

// Network is a declared network.
type Network struct {
	Name       string
	ObjectName string // its name in the engine; "": derived
	Driver     string
	Internal   bool
	External   bool // it exists already
	Labels     map[string]string
	LeftOut    []LeftOut
}

// Volume is a declared volume.
type Volume struct {
	Name       string
	ObjectName string // its name in the engine; "": derived
	Driver     string
	External   bool // it exists already
	Labels     map[string]string
	LeftOut    []LeftOut
}

// maxMistakes limits the mistakes that an error names.
const maxMistakes = 20

// Mistakes are the mistakes in a compose file, each a sentence about one place in it.
type Mistakes []string

// Error returns all mistakes.
func (m Mistakes) Error() string { return strings.Join(m, "; ") }

// Read reads the text of a compose file. The error is of the type Mistakes.
func Read(text string, in Inputs) (*Project, error) {
	doc, err := yamltext.Parse(text)
	switch {
	case errors.Is(err, yamltext.ErrEmpty):
		return nil, Mistakes{"it is empty: it declares no service"}
	case err != nil:
		return nil, Mistakes{err.Error()}
	}
	vars, err := newVariables(in)
	if err != nil {
		return nil, Mistakes{err.Error()}
	}
	r := &reader{in: in, vars: vars}
	r.nameProject(doc["name"])
	resolved, ok := r.expand("", doc).(map[string]any)
	if !ok || len(r.mistakes) > 0 {
		return nil, r.all()
	}
	p := r.project(resolved)
	if len(r.mistakes) > 0 {
		return nil, r.all()
	}
	return p, nil
}

// nameVariable is the variable that names a project. Where it is not set, compose sets it for the file.
const nameVariable = "COMPOSE_PROJECT_NAME"

// nameProject names the project: by the environment, else by the file, else by its folder.
func (r *reader) nameProject(said any) {
	lookup := r.vars.lookup
	r.name, _ = lookup(nameVariable)
	if text, ok := said.(string); ok && r.name == "" {
		if name, err := r.vars.expand(text); err == nil { // else the mistake is found when all is expanded
			r.name = projectName(name)
		}
	}
	if r.name == "" {
		r.name = projectName(r.in.Folder)
	}
	r.vars.lookup = func(name string) (string, bool) {
		if value, ok := lookup(name); ok || name != nameVariable {
			return value, ok
		}
		return r.name, true
	}
}

// reader reads one file and collects its mistakes.
type reader struct {
	in       Inputs
	vars     *variables
	name     string // of the project
	mistakes Mistakes
	networks map[string]bool // declared ones
	volumes  map[string]bool // declared ones
	services map[string]any
}

func (r *reader) fail(path, format string, args ...any) {
	if len(r.mistakes) <= maxMistakes {
		r.mistakes = append(r.mistakes, path+" "+fmt.Sprintf(format, args...))
	}
}

func (r *reader) all() Mistakes {
	if len(r.mistakes) > maxMistakes {
		return append(r.mistakes[:maxMistakes:maxMistakes], "there are more mistakes")
	}
	return r.mistakes
}

// expand returns a value with all of its variables replaced, as compose does: in values, not in keys.
func (r *reader) expand(path string, v any) any {
	switch v := v.(type) {
	case string:
		text, err := r.vars.expand(v)
		if err != nil {
			r.fail(strings.TrimPrefix(path, "."), "cannot be used: %v", err)
		}
		return text
	case []any:
		all := make([]any, len(v))
		for i, element := range v {
			all[i] = r.expand(fmt.Sprintf("%s[%d]", path, i), element)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all[key] = r.expand(path+"."+key, v[key])
		}
		return all
	default:
		return v
	}
}

func (r *reader) project(doc map[string]any) *Project {
	var p Project
	s := r.section("", doc, &p.LeftOut)
	if name, ok := s.take("name"); ok {
		r.text("name", name)
		s.leave("name", name, "the vmctl block names the project")
	}
	if _, ok := s.take("include"); ok {
		r.fail("include", "names further files, and one file is read")
	}
	services, _ := s.take("services")
	networks, _ := s.take("networks")
	volumes, _ := s.take("volumes")
	s.rest(fileReason)
	r.services = r.mapping("services", services)
	if len(r.services) == 0 && len(r.mistakes) == 0 {
		r.fail("services", "declares no service")
	}
	for name, v := range r.named("networks", networks) {
		p.Networks = append(p.Networks, r.network(name, v))
	}
	for name, v := range r.named("volumes", volumes) {
		p.Volumes = append(p.Volumes, r.volume(name, v))
	}
	r.networks, r.volumes = map[string]bool{}, map[string]bool{}
	for _, n := range p.Networks {
		r.networks[n.Name] = true
	}
	for _, v := range p.Volumes {
		r.volumes[v.Name] = true
	}
	for name, v := range r.named("services", services) {
		p.Services = append(p.Services, r.service(name, v))
	}
	if r.usesDefault(p.Services) {
		p.Networks = slices.Insert(p.Networks, 0, Network{Name: defaultNetwork})
	}
	for _, name := range r.vars.unset() {
		p.LeftOut = append(p.LeftOut, LeftOut{Setting: "$" + name, Reason: "the variable is not set, so that an empty text took its place"})
	}
	return &p
}

// usesDefault reports whether a service is in compose's default network without a declaration of it.
func (r *reader) usesDefault(all []Service) bool {
	return !r.networks[defaultNetwork] && slices.ContainsFunc(all, func(s Service) bool {
		return slices.ContainsFunc(s.Networks, func(a Attachment) bool { return a.Network == defaultNetwork })
	})
}

// projectName returns the name that compose gives to a project: of its folder, as far as it accepts the characters.
func projectName(text string) string {
	return strings.TrimLeft(strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
			return c
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		default:
			return -1
		}
	}, text), "_-")
}
