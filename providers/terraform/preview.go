package terraform

import (
	"encoding/json"
	"fmt"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"vmctl/providers"
)

// preview holds the changes that Terraform would make.
type preview struct {
	changes []resourceChange
	text    string // all of it, with its secrets: for a keyed digest
}

// resourceChange describes the change that Terraform would make to one resource.
type resourceChange struct {
	address string
	action  string // in words: create, update, replace, destroy
	applies providers.Applies
	reason  string
}

// String returns the change in words.
func (c resourceChange) String() string {
	if c.reason == "" {
		return c.action + " " + c.address
	}
	return fmt.Sprintf("%s %s (%s)", c.action, c.address, c.reason)
}

// previewOf reads a plan of Terraform.
func previewOf(plan *tfjson.Plan, reasons map[string]string) *preview {
	var p preview
	for _, r := range plan.ResourceChanges {
		c := resourceChange{address: r.Address, reason: strings.ReplaceAll(reasons[r.Address], "_", " ")}
		switch a := r.Change.Actions; {
		case a.Replace():
			c.action, c.applies = "replace", providers.Replace
		case a.Create():
			c.action, c.applies = "create", providers.Live
		case a.Delete():
			c.action, c.applies = "destroy", providers.Replace
		case a.Update():
			c.action, c.applies = "update", providers.Live
		default:
			continue
		}
		p.changes = append(p.changes, c)
	}
	text, err := json.Marshal(struct{ R, O, D any }{plan.ResourceChanges, plan.OutputChanges, plan.ResourceDrift})
	if err != nil {
		panic("terraform: what was decoded cannot be encoded: " + err.Error())
	}
	p.text = string(text)
	return &p
}

// losing lists the changes that destroy a resource.
func (p *preview) losing() []string {
	var all []string
	for _, c := range p.changes {
		if c.applies == providers.Replace {
			all = append(all, c.String())
		}
	}
	return all
}
