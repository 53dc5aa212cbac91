package cli

import (
	"strings"

	"vmctl/internal/shellword"
)

// commandLine returns a command that the reader can type, with this run's flags for the files
// and the scope.
func (a *app) commandLine(name string, f planFlags, more ...string) string {
	words := append([]string{"vmctl"}, strings.Fields(name)...)
	if a.global.dir != "" {
		words = append(words, "-C", a.global.dir)
	}
	add := func(flag string, values ...string) {
		for _, v := range values {
			words = append(words, "--"+flag+"="+v)
		}
	}
	if a.global.env != "" {
		add("env", a.global.env)
	}
	if a.global.dataDir != "" {
		add("data-dir", a.global.dataDir)
	}
	if !f.kept {
		for _, v := range a.global.vars { // a value may be secret: the reader knows it
			variable, _, _ := strings.Cut(v, "=")
			add("var", variable+"=...")
		}
		add("var-file", a.global.varFiles...)
	}
	add("target", f.targets...)
	add("exclude", f.excludes...)
	add("allow-replace", f.allowReplace...)
	add("allow-destroy", f.allowDestroy...)
	add("allow-interrupt", f.allowInterrupt...)
	words = append(words, more...)
	return shellword.Join(words)
}
