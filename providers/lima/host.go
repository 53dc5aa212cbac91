package lima

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// limaModule is the module of Lima's packages.
const limaModule = "github.com/lima-vm/lima/v2"

// Version returns the version of Lima in a vmctl-lima, like 2.2.0. It reads the file and does not run it.
func Version(program string) (string, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", fmt.Errorf("read the version of %s: %w", program, err)
	}
	for _, m := range info.Deps {
		if m.Path == limaModule {
			return strings.TrimPrefix(m.Version, "v"), nil
		}
	}
	return "", fmt.Errorf("read the version of %s: it has no module %s", program, limaModule)
}

// version returns the version of Lima in the program that makes and starts instances; "": it cannot be read.
func (h Host) version() string {
	read := h.Version
	if read == nil {
		read = Version
	}
	version, err := read(h.Program)
	if err != nil {
		return ""
	}
	return version
}

// vmTypes lists the vmTypes of instances that vmctl makes on this machine.
func (h Host) vmTypes() []string {
	if h.WSL.Exists() {
		return []string{driverQEMU, driverWSL2}
	}
	return []string{driverQEMU}
}

// hostFacts returns what doctor shows of this machine.
func (p *Provider) hostFacts() map[string]string {
	facts := map[string]string{"home": p.home}
	if version := p.version(); version != "" {
		facts["Lima"] = version + " in " + p.host.Program
	}
	return facts
}

// lacking returns the problem of a machine that lacks a program which a kind needs; nil: it lacks none.
func (p *Provider) lacking(kind spec.Kind) *providers.Problem {
	if missing := p.missing(); missing != nil {
		return missing
	}
	var absent []string
	for _, name := range neededBy[kind] {
		optional := p.host.WSL.Exists() && strings.HasPrefix(name, "qemu-") // WSL needs none of QEMU's
		if !optional && !p.onPath(name) {
			absent = append(absent, name)
		}
	}
	if len(absent) == 0 {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "no_program",
		Next: providers.Say("install QEMU and OpenSSH: in a clone of vmctl, scripts/deps.sh lima; on macOS, brew install qemu"),
		Err:  fmt.Errorf("missing on the PATH: %s", strings.Join(absent, ", ")),
	}
}

// missing returns the problem of a machine without Lima's part of vmctl.
func (p *Provider) missing() *providers.Problem {
	if p.host.Program != "" && exists(p.host.Program) {
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "no_lima", Next: providers.Say("build it: make lima", "or install vmctl with its libexec folder"),
		Err: fmt.Errorf("vmctl-lima, which runs Lima, is missing: %s", cmp.Or(p.host.Program, "libexec/vmctl-lima")),
	}
}

// onPath reports whether the PATH has a program of that name that may be run.
func (p *Provider) onPath(name string) bool {
	path, mode := p.host.Getenv("PATH"), fs.FileMode(0o111)
	if runtime.GOOS == "windows" { // the name of a file tells there whether it may be run
		path, mode, name = cmp.Or(path, p.host.Getenv("Path")), 0o444, name+".exe"
	}
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&mode != 0
	})
}
