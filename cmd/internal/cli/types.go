package cli

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/wsl"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/engine"
	"vmctl/providers/keptlog"
	"vmctl/providers/libvirt"
	"vmctl/providers/lima"
	"vmctl/providers/provision"
	"vmctl/providers/sim"
	"vmctl/providers/terraform"
	"vmctl/spec"
)

// builtInTypes lists every provider type of this build, and those of further kinds. serve returns the beginning of the command that
// serves the engine of a VM.
func builtInTypes(env Env, serve func(providers.Settings) []string) providers.Types {
	all := providers.Types{Systems: map[string]providers.Type{}, Inside: map[spec.Kind]providers.Type{}}
	for _, t := range []providers.Type{
		libvirt.Type(libvirt.Host{UID: env.UID, Getenv: env.Getenv, Cache: cacheDir(env.Getenv)}),
		lima.Type(lima.Host{Program: limaProgram(env), Getenv: env.Getenv, UID: env.UID, Home: env.Getenv("HOME"), WSL: wslHost(env), KVM: kvmDevice(env)}),
		sim.Type(sim.Host{Program: env.Program, Args: []string{simVM}, Path: env.Getenv("PATH")}),
		terraform.Type(terraform.Host{Program: env.Program, Environ: env.Environ, Dir: env.Dir, Temp: env.Getenv("XDG_RUNTIME_DIR")}),
	} {
		all.Systems[t.Name] = keptlog.Wrap(provision.Wrap(t))
	}
	engines := engine.Types(engine.Host{Docker: dockerFolder(env), Serve: serve, Environ: env.Environ})
	for _, t := range slices.Concat(engines, env.Inside) {
		for kind := range t.Kinds {
			all.Inside[kind] = t
		}
	}
	return all
}

// dockerFolder returns the folder of the configuration of Docker's client; "": it is not known.
func dockerFolder(env Env) string {
	folder, home := env.Getenv("DOCKER_CONFIG"), env.Getenv("HOME")
	switch {
	case folder != "" && !filepath.IsAbs(folder):
		return filepath.Join(env.Dir, folder)
	case folder != "":
		return folder
	case home != "":
		return filepath.Join(home, ".docker")
	default:
		return ""
	}
}

// limaProgram returns the program that runs Lima: in the folder libexec beside that of vmctl.
func limaProgram(env Env) string {
	vmctl, name := env.Program, "vmctl-lima"
	if vmctl == "" {
		return ""
	}
	if env.Build.system() == "windows" {
		name += ".exe"
	}
	if real, err := filepath.EvalSymlinks(vmctl); err == nil {
		vmctl = real
	}
	return filepath.Join(filepath.Dir(filepath.Dir(vmctl)), "libexec", name)
}

// kvmDevice returns the device of Linux's hypervisor; "": this is another system.
func kvmDevice(env Env) string {
	if env.Build.system() != "linux" {
		return ""
	}
	return "/dev/kvm"
}

// wslHost gives access to the distributions of WSL on Windows, and to none elsewhere.
func wslHost(env Env) wsl.Host {
	if env.Build.system() != "windows" {
		return wsl.Host{}
	}
	host := wsl.Host{Program: filepath.Join(env.Getenv("SystemRoot"), "System32", "wsl.exe")}
	for _, name := range []string{"APPDATA", "LOCALAPPDATA", "SystemDrive", "SystemRoot", "TEMP", "TMP", "USERPROFILE"} {
		if value := env.Getenv(name); value != "" {
			host.Env = append(host.Env, name+"="+value)
		}
	}
	return host
}

// builtInType returns the type of the provider of resources that name none: macOS has no libvirt.
func (a *app) builtInType() string {
	if a.env.Build.system() == "darwin" {
		return lima.TypeName
	}
	return libvirt.TypeName
}

func (a *app) typeNames() []string { return slices.Sorted(maps.Keys(a.types.Systems)) }

// check returns the flaws that keep a provider type from ever making a resource.
func (a *app) check(providerType string, kind spec.Kind, want cty.Value) []spec.Flaw {
	t := a.types.Of(providerType, kind, spec.Address{})
	if t.Check == nil {
		return nil
	}
	return t.Check(kind, want)
}

// system returns the key of the system that a provider block leads to.
func (a *app) system(ref spec.ProviderRef, attrs cty.Value) string {
	t := a.types.System(ref)
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
	attrs, known := a.types.Of(providerType, kind, spec.Address{}).Kinds[kind]
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
