package main

import (
	"strings"
	"testing"
)

// The message of an instance has the values of the instance in it: those that limactl fills in.
func TestMessage(t *testing.T) {
	for _, c := range []struct{ name, message, want, failure string }{
		{name: "none"},
		{name: "values", message: `"{{.Name}} {{.Status}} {{.SSHLocalPort}} {{.Param.ENGINE}} {{.Dir}}"`, want: "a Running 60022 moby DIR/a"},
		{name: "setting, as in Lima's docker", message: `"{{if .Instance.Config.VMOpts.vz.rosetta.enabled}}a{{else}}b{{end}} {{.Config.Plain}}"`, want: "b true"},
		{name: "scripts", message: `"{{range .Config.Provision}}{{.Script}}{{end}}{{.Instance.Config.Param}}"`, want: "map[]"},
		{name: "unknown field", message: `"{{.Nonsense}}"`, failure: "fill in the message of instance a"},
		{name: "half a template", message: `"{{.Dir"`, failure: "fill in the message of instance a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHome(t)
			lines := []string{"param: {ENGINE: moby}", "provision: [{mode: system, script: 'echo {{.Param.ENGINE}}'}]"}
			if c.message != "" {
				lines = append(lines, "message: "+c.message)
			}
			h.instance("a", document("/nowhere", lines...))
			got, failed := h.try("", "message", "--ssh-port=60022", "a")
			contains(t, failed, c.failure)
			text, _ := got["message"].(string)
			if text != strings.Replace(c.want, "DIR", h.dir, 1) {
				t.Errorf("message %q, want %q", text, c.want)
			}
		})
	}
}
