package cli

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"vmctl/internal/ctyread"
	"vmctl/providers/job"
	"vmctl/spec"
)

// containedInVMs returns a mistake for each job block that is to run in a copy of a workspace inside of a VM.
func containedInVMs(c *spec.Config) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, r := range c.Resources {
		if r.Address.Kind != spec.Job || job.Containment(ctyread.Text(r.Want, "containment")) != job.InCopy {
			continue
		}
		for _, used := range r.Uses {
			in, declared := c.Resource(used)
			if used.Kind != spec.Workspace || !declared || (in.Inside == spec.Address{}) {
				continue
			}
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Not built in yet", Subject: &r.Range,
				Detail: fmt.Sprintf("`containment = %q` of `%s` is not built in yet for a workspace in a VM, as `%s` is: leave it out, or use a workspace on this host.", job.InCopy, r.Address, used),
			})
		}
	}
	return diags
}
