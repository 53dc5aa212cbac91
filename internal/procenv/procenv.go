// Package procenv selects variables of an environment (NAME=value), by name.
package procenv

import (
	"slices"
	"strings"
)

// Wildcard ends a name that stands for all names which begin with the text before it.
const Wildcard = "*"

// VariablePrefix begins the name of a variable that sets a variable of a spec, which may be a secret.
const VariablePrefix = "VMCTL_VAR_"

// WithoutVariables returns the variables that set no variable of a spec.
func WithoutVariables(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool { return strings.HasPrefix(entry, VariablePrefix) })
}

// IsProxy reports whether programs find a proxy by the variable of this name: http_proxy, NO_PROXY and the like.
func IsProxy(name string) bool { return slices.Contains(proxies, strings.ToUpper(name)) }

// WithoutProxies returns the variables that say nothing about proxies.
func WithoutProxies(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool { return IsProxy(nameOf(entry)) })
}

// Named returns the variables that a list names: by NAME, or by PREFIX*.
func Named(environ, names []string) []string {
	var all []string
	for _, entry := range environ {
		if Names(names, nameOf(entry)) {
			all = append(all, entry)
		}
	}
	return all
}

// Names reports whether a list names a variable: by NAME, or by PREFIX*. One that sets a variable of a spec is named by its NAME alone.
func Names(names []string, name string) bool {
	return slices.ContainsFunc(names, func(listed string) bool {
		prefix, many := strings.CutSuffix(listed, Wildcard)
		return listed == name || many && prefix != "" && strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, VariablePrefix)
	})
}

func nameOf(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	return name
}
