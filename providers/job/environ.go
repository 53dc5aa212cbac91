package job

import (
	"slices"
	"strings"

	"vmctl/internal/procenv"
)

// Environ describes what the environment of a job is made of.
type Environ struct {
	From       []string // the environment of who starts the job, NAME=value
	Pass       []string // names that pass besides the usual ones; NAME* is all that begin with NAME
	Set        []string // NAME=value; of two with one name the later one counts
	StripProxy bool     // no variable of a proxy passes, also none that Pass names
}

// Build returns the environment of a job: it starts empty, and gets a short list of names. warnings
// name the variables that configure agents, git or providers, and that were let in by name.
func (e Environ) Build() (environ, warnings []string) {
	values := map[string]string{"TERM": "dumb"}
	for _, entry := range e.From {
		name, value, ok := strings.Cut(entry, "=")
		isProxy := procenv.IsProxy(name)
		if !ok || name == "TMPDIR" || name == "TERM" || name == Marker || isProxy && e.StripProxy {
			continue
		}
		switch {
		case isProxy, isUsual(name):
			values[name] = value
		case procenv.Names(e.Pass, name):
			values[name] = value
			if why := Scrubbed(name); why != "" {
				warnings = append(warnings, "passes "+name+" ("+why+")")
			}
		}
	}
	for _, entry := range e.Set {
		name, value, _ := strings.Cut(entry, "=")
		values[name] = value
	}
	for name, value := range values {
		environ = append(environ, name+"="+value)
	}
	slices.Sort(environ)
	slices.Sort(warnings)
	return environ, warnings
}

// Names returns the names of an environment.
func Names(environ []string) []string {
	names := []string{}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	return names
}

// Scrubbed returns what is wrong with a variable for a job that did not ask for it, "" if nothing
// is: it redirects git or a program, or it has to do with a provider of models or clouds.
func Scrubbed(name string) string {
	upper := strings.ToUpper(name)
	for _, list := range scrubLists {
		if slices.ContainsFunc(list.prefixes, func(p string) bool { return strings.HasPrefix(upper, p) }) ||
			slices.ContainsFunc(list.suffixes, func(s string) bool { return strings.HasSuffix(upper, s) }) ||
			slices.Contains(list.names, upper) {
			return list.what
		}
	}
	return ""
}

func isUsual(name string) bool {
	return slices.Contains(usualNames, name) ||
		(strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_")) && Scrubbed(name) == ""
}
