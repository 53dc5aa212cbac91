package cli

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/providers/lima"
	"vmctl/providers/sim"
	"vmctl/spec"
)

// builtInTypes lists every provider type of this build.
func builtInTypes(env Env) map[string]providers.Type {
	all := map[string]providers.Type{}
	for _, t := range []providers.Type{
		libvirt.Type(libvirt.Host{UID: env.UID, Getenv: env.Getenv, Cache: cacheDir(env.Getenv)}),
		lima.Type(lima.Host{Program: limaProgram(env.Program), Getenv: env.Getenv, UID: env.UID, Home: env.Getenv("HOME")}),
		sim.Type(sim.Host{Program: env.Program, Args: []string{simVM}}),
	} {
		all[t.Name] = t
	}
	return all
}

// limaProgram returns the program that runs Lima: in the folder libexec beside that of vmctl.
func limaProgram(vmctl string) string {
	if vmctl == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(vmctl); err == nil {
		vmctl = real
	}
	return filepath.Join(filepath.Dir(filepath.Dir(vmctl)), "libexec", "vmctl-lima")
}

// builtInType returns the type of the provider of resources that name none: macOS has no libvirt.
func (a *app) builtInType() string {
	if system, _, _ := strings.Cut(a.env.Build.Platform, "/"); system == "darwin" {
		return lima.TypeName
	}
	return libvirt.TypeName
}

func (a *app) typeNames() []string { return slices.Sorted(maps.Keys(a.types)) }

// typeOf returns the type that manages a kind: the provider's own type, or its type for
// resources inside VMs.
func (a *app) typeOf(providerType string, kind spec.Kind) providers.Type {
	t := a.types[providerType]
	if _, known := t.Kinds[kind]; !known && t.Inside != nil {
		return *t.Inside
	}
	return t
}

// check returns the flaws that keep a provider type from ever making a resource.
func (a *app) check(providerType string, kind spec.Kind, want cty.Value) []spec.Flaw {
	t := a.typeOf(providerType, kind)
	if t.Check == nil {
		return nil
	}
	return t.Check(kind, want)
}

// system returns the key of the system that a provider block leads to.
func (a *app) system(ref spec.ProviderRef, attrs cty.Value) string {
	t := a.types[ref.Type]
	if t.Resolve != nil {
		attrs = t.Resolve(attrs)
	}
	key, err := planner.SystemKey(t, ref, attrs)
	if err != nil { // opening the provider reports it
		return ref.String()
	}
	return key
}

// supports reports whether a type of provider knows an attribute of a kind, or
// the block that it is in; with no path, whether it knows the kind.
func (a *app) supports(providerType string, kind spec.Kind, path string) bool {
	attrs, known := a.typeOf(providerType, kind).Kinds[kind]
	if path == "" {
		return known
	}
	for path != "" {
		if _, ok := attrs[path]; ok {
			return true
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return false
}
