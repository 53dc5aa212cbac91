package cli

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// longNames returns a mistake for each block whose object's default name would be longer than
// its provider allows.
func (a *app) longNames(c *spec.Config) hcl.Diagnostics {
	var diags hcl.Diagnostics
	owner := providers.Project{Name: c.Settings.Project, ID: c.Settings.ID, Env: a.global.env}
	for _, r := range c.Resources {
		limit := a.types.Of(r.Provider.Type, r.Address.Kind, r.Inside).NameLimit
		name := planner.ObjectName(owner, r.Address)
		if limit == 0 || len(name) <= limit || ctyread.Text(r.Want, "name") != "" {
			continue
		}
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Name too long", Subject: &r.Range,
			Detail: fmt.Sprintf("The object of `%s` would be called %q: that has %d bytes, and provider %s has names of up to %d. Use a shorter label or key, of letters and digits.",
				r.Address, name, len(name), r.Provider.Type, limit),
		})
	}
	return diags
}
