package cli

import (
	"strings"

	"vmctl/cmd/internal/view"
)

// commandLine returns a command that the reader can type, with this run's flags for the files
// and the scope.
func (a *app) commandLine(name string, f planFlags, more ...string) string {
	return a.ownFlags(f).CommandLine(strings.Fields(name), more...)
}

// ownFlags returns this run's flags for the files and, from f, for the scope.
func (a *app) ownFlags(f planFlags) view.OwnFlags {
	var own view.OwnFlags
	add := func(to *[]string, flag string, values ...string) {
		for _, v := range values {
			*to = append(*to, "--"+flag+"="+v)
		}
	}
	if a.global.dir != "" {
		own.Global = append(own.Global, "-C", a.global.dir)
	}
	if a.global.env != "" {
		add(&own.Global, "env", a.global.env)
	}
	if a.global.dataDir != "" {
		add(&own.Global, "data-dir", a.global.dataDir)
	}
	if !f.kept {
		for _, v := range a.global.vars { // a sensitive one belongs into the environment
			if variable, _, _ := strings.Cut(v, "="); a.config != nil && a.config.IsPublicVariable(strings.TrimSpace(variable)) {
				add(&own.Global, "var", v)
			}
		}
		add(&own.Global, "var-file", a.global.varFiles...)
	}
	add(&own.Plan, "target", f.targets...)
	add(&own.Plan, "exclude", f.excludes...)
	add(&own.Plan, "replace", f.replace...)
	add(&own.Plan, "allow-replace", f.allowReplace...)
	add(&own.Plan, "allow-destroy", f.allowDestroy...)
	add(&own.Plan, "allow-interrupt", f.allowInterrupt...)
	add(&own.Plan, "allow-dirty", f.allowDirty...)
	if f.noWait {
		add(&own.Plan, "wait", "false")
	}
	return own
}
