package view

import (
	"fmt"
	"maps"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// TerraformFormatVersion is the version of a plan as Terraform writes it: `terraform show -json` of Terraform 1.5 and later.
const TerraformFormatVersion = "1.2"

// TerraformPlan is a plan as `terraform show -json` writes one, for the tools that read that. A sensitive value is masked, and its
// place is true in before_sensitive or after_sensitive.
type TerraformPlan struct {
	FormatVersion   string                    `json:"format_version"`
	PlannedValues   TerraformValues           `json:"planned_values"`
	ResourceChanges []TerraformChange         `json:"resource_changes"`
	OutputChanges   map[string]TerraformValue `json:"output_changes"`
	Checks          []TerraformCheck          `json:"checks"`
	Complete        bool                      `json:"complete"`  // nothing is left out, deferred or blocked
	Applyable       bool                      `json:"applyable"` // an apply would do something
	Errored         bool                      `json:"errored"`
}

// TerraformValues are the values once a plan is carried out.
type TerraformValues struct {
	Outputs    map[string]TerraformOutput `json:"outputs"`
	RootModule struct {
		Resources []TerraformResource `json:"resources"`
	} `json:"root_module"`
}

// TerraformOutput is the value of an output once a plan is carried out.
type TerraformOutput struct {
	Sensitive bool `json:"sensitive"`
	Value     any  `json:"value,omitempty"`
}

// TerraformAddress names a resource.
type TerraformAddress struct {
	Address      string `json:"address"`
	Mode         string `json:"mode"` // managed
	Type         string `json:"type"` // the kind: vm
	Name         string `json:"name"`
	Index        any    `json:"index,omitempty"` // the key of an instance of a for_each
	ProviderName string `json:"provider_name"`   // vmctl
}

// TerraformResource is a resource once a plan is carried out.
type TerraformResource struct {
	TerraformAddress
	SchemaVersion   int `json:"schema_version"`
	Values          any `json:"values"`
	SensitiveValues any `json:"sensitive_values"`
}

// TerraformChange is the change of one resource.
type TerraformChange struct {
	TerraformAddress
	Change       TerraformValue `json:"change"`
	ActionReason string         `json:"action_reason,omitempty"`
}

// TerraformValue is a value before and after, and what becomes of it.
type TerraformValue struct {
	Actions         []string         `json:"actions"`
	Before          any              `json:"before"`
	After           any              `json:"after"`
	AfterUnknown    any              `json:"after_unknown"`
	BeforeSensitive any              `json:"before_sensitive"`
	AfterSensitive  any              `json:"after_sensitive"`
	Importing       *TerraformImport `json:"importing,omitempty"`
}

// TerraformImport is the object that a change takes over.
type TerraformImport struct {
	ID any `json:"id"`
}

// TerraformCheck is a block with conditions, and how they end.
type TerraformCheck struct {
	Address   TerraformCheckAddress  `json:"address"`
	Status    string                 `json:"status"` // pass | fail | unknown | error
	Instances []TerraformCheckResult `json:"instances"`
}

// TerraformCheckAddress names a check block or a resource.
type TerraformCheckAddress struct {
	Kind      string `json:"kind"` // check | resource
	Mode      string `json:"mode,omitempty"`
	Type      string `json:"type,omitempty"`
	Name      string `json:"name"`
	ToDisplay string `json:"to_display"`
}

// TerraformCheckResult says how the conditions of one instance end.
type TerraformCheckResult struct {
	Address  TerraformInstance  `json:"address"`
	Status   string             `json:"status"`
	Problems []TerraformProblem `json:"problems,omitempty"`
}

// TerraformInstance names an instance.
type TerraformInstance struct {
	ToDisplay   string `json:"to_display"`
	InstanceKey any    `json:"instance_key,omitempty"`
}

// TerraformProblem says why a condition fails.
type TerraformProblem struct {
	Message string `json:"message"`
}

// PlanTerraform returns a plan as Terraform would write it.
func PlanTerraform(doc PlanDocument) TerraformPlan {
	t := TerraformPlan{
		FormatVersion: TerraformFormatVersion, ResourceChanges: []TerraformChange{}, OutputChanges: map[string]TerraformValue{},
		Checks: terraformChecks(doc.Checks), Complete: len(doc.Deferred)+len(doc.Targets) == 0, Applyable: len(doc.Steps) > 0,
	}
	t.PlannedValues.Outputs = map[string]TerraformOutput{}
	t.PlannedValues.RootModule.Resources = []TerraformResource{}
	for _, c := range doc.Changes {
		c.Before, c.After = withPolicy(c.Before, c.PolicyBefore), withPolicy(c.After, c.PolicyAfter)
		t.Complete = t.Complete && c.Blocked == nil
		at := terraformAddress(c.Address)
		t.ResourceChanges = append(t.ResourceChanges, TerraformChange{TerraformAddress: at, Change: terraformValue(c), ActionReason: actionReason(c)})
		after := c.After
		if c.Blocked != nil {
			after = c.Before
		}
		if after != nil {
			t.PlannedValues.RootModule.Resources = append(t.PlannedValues.RootModule.Resources, TerraformResource{
				TerraformAddress: at, Values: after, SensitiveValues: masked(after),
			})
		}
	}
	for _, o := range doc.Outputs {
		v := TerraformValue{Actions: outputActions(o), Before: o.Before, After: o.After, AfterUnknown: o.AfterUnknown, BeforeSensitive: o.Sensitive, AfterSensitive: o.Sensitive}
		t.OutputChanges[o.Name] = v
		t.PlannedValues.Outputs[o.Name] = TerraformOutput{Sensitive: o.Sensitive, Value: o.After}
	}
	return t
}

// withPolicy returns the attributes of an object with its policies, as a block has both; nil: there is no object.
func withPolicy(attrs, policy any) any {
	into, ok := attrs.(map[string]any)
	more, also := policy.(map[string]any)
	if !ok || !also {
		return attrs
	}
	all := maps.Clone(into)
	for name, v := range more {
		if _, taken := all[name]; taken {
			v = withPolicy(all[name], v)
		}
		all[name] = v
	}
	return all
}

func terraformAddress(text string) TerraformAddress {
	t := TerraformAddress{Address: text, Mode: "managed", ProviderName: "vmctl"}
	addr, err := spec.ParseAddress(text)
	if err != nil {
		return t
	}
	t.Type, t.Name = string(addr.Kind), addr.Name
	if addr.Key != "" {
		t.Index = addr.Key
	}
	return t
}

// terraformValue returns what becomes of a resource. What is blocked stays as it is.
func terraformValue(c ChangeDocument) TerraformValue {
	v := TerraformValue{
		Actions: terraformActions(c), Before: c.Before, After: c.After, AfterUnknown: c.AfterUnknown, BeforeSensitive: masked(c.Before), AfterSensitive: masked(c.After),
	}
	if v.AfterUnknown == false {
		v.AfterUnknown = map[string]any{}
	}
	if c.Blocked != nil {
		v.After, v.AfterUnknown, v.AfterSensitive = v.Before, map[string]any{}, v.BeforeSensitive
	}
	if action := providers.Action(c.Action); action == providers.Import || action == providers.Adopt {
		id, _ := c.After.(map[string]any)
		v.Importing = &TerraformImport{ID: id["id"]}
	}
	return v
}

func terraformActions(c ChangeDocument) []string {
	if c.Blocked != nil {
		return []string{"no-op"}
	}
	switch action := providers.Action(c.Action); action {
	case providers.Create:
		return []string{"create"}
	case providers.Destroy:
		return []string{"delete"}
	case providers.ReplaceIt:
		return []string{"delete", "create"}
	case providers.NoOp, providers.Import, providers.Adopt:
		return []string{"no-op"}
	case providers.Forget, providers.Release:
		return []string{"forget"}
	case providers.Update, providers.RestartIt, providers.Start, providers.Stop, providers.Recover:
		return []string{"update"}
	default:
		panic("unknown action " + c.Action)
	}
}

// actionReason returns Terraform's word for the reason of a change; "": it has none.
func actionReason(c ChangeDocument) string {
	switch {
	case c.Blocked != nil:
		return ""
	case c.Action == string(providers.Destroy) && c.PolicyAfter == nil:
		return "delete_because_no_resource_config"
	case c.Action != string(providers.ReplaceIt):
		return ""
	case slices.ContainsFunc(c.Edits, func(e EditDocument) bool { return e.Applies == string(providers.Replace) }):
		return "replace_because_cannot_update"
	default:
		return "replace_by_request"
	}
}

func outputActions(o OutputChange) []string {
	switch {
	case o.AfterUnknown:
		return []string{"update"}
	case o.Before == nil && o.After != nil:
		return []string{"create"}
	case fmt.Sprint(o.Before) != fmt.Sprint(o.After):
		return []string{"update"}
	default:
		return []string{"no-op"}
	}
}

// masked returns true for each part of a document that is masked, in the form of the document; an empty object: none is.
func masked(v any) any {
	if part := maskedPart(v); part != nil {
		return part
	}
	return map[string]any{}
}

func maskedPart(v any) any {
	switch v := v.(type) {
	case string:
		if v == "(sensitive)" {
			return true
		}
	case map[string]any:
		all := map[string]any{}
		for name, part := range v {
			if inner := maskedPart(part); inner != nil {
				all[name] = inner
			}
		}
		if len(all) > 0 {
			return all
		}
	case []any:
		all, found := make([]any, len(v)), false
		for i, part := range v {
			all[i] = maskedPart(part)
			if found = found || all[i] != nil; all[i] == nil {
				all[i] = false
			}
		}
		if found {
			return all
		}
	}
	return nil
}

// terraformChecks groups conditions by the block that has them.
func terraformChecks(all []CheckEntry) []TerraformCheck {
	checks := []TerraformCheck{}
	for _, c := range all {
		at := TerraformCheckAddress{Kind: "check", Name: c.Address, ToDisplay: c.Address}
		if c.Kind == string(spec.Assert) {
			at.Name = c.Address[len("check."):]
		} else if addr, err := spec.ParseAddress(c.Address); err == nil {
			at = TerraformCheckAddress{Kind: "resource", Mode: "managed", Type: string(addr.Kind), Name: addr.Name, ToDisplay: addr.Block().String()}
		}
		i := slices.IndexFunc(checks, func(known TerraformCheck) bool { return known.Address == at })
		if i < 0 {
			i = len(checks)
			checks = append(checks, TerraformCheck{Address: at, Status: "pass"})
		}
		checks[i].add(c)
	}
	return checks
}

func (t *TerraformCheck) add(c CheckEntry) {
	i := slices.IndexFunc(t.Instances, func(known TerraformCheckResult) bool { return known.Address.ToDisplay == c.Address })
	if i < 0 {
		i = len(t.Instances)
		at := TerraformInstance{ToDisplay: c.Address}
		if addr, err := spec.ParseAddress(c.Address); err == nil && addr.Key != "" {
			at.InstanceKey = addr.Key
		}
		t.Instances = append(t.Instances, TerraformCheckResult{Address: at, Status: "pass"})
	}
	one := &t.Instances[i]
	one.Status, t.Status = worse(one.Status, c.Status), worse(t.Status, c.Status)
	if c.Message != "" {
		one.Problems = append(one.Problems, TerraformProblem{Message: c.Message})
	}
}

// worse returns the worse one of two states of conditions.
func worse(a, b string) string {
	order := []string{"pass", "unknown", "fail", "error"}
	if slices.Index(order, a) < slices.Index(order, b) {
		return b
	}
	return a
}
