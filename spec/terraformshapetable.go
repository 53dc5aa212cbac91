package spec

import "github.com/zclconf/go-cty/cty"

var terraformShape = Block{
	Name: "terraform",
	Doc:  "Virtual machines of a Terraform or OpenTofu module: one workspace of the module for each.",
	Attrs: []Attr{
		providerForEach,
		{
			Name: "dir", Type: cty.String, Form: OneLine, Required: true, Known: true, Reach: ReachCommand,
			Doc: "The folder of the module, relative to the spec's folder.",
		},
		{
			Name: "binary", Type: cty.String, Form: OneLine, Reach: ReachCommand, Default: cty.StringVal("terraform"), Known: true,
			Doc: "The program, terraform or tofu: a name in PATH, or a path.",
		},
		{
			Name: "backend_config", Type: cty.Map(cty.String), Known: true, Sensitive: true,
			Doc: "Settings of the module's backend that its block leaves out, as of -backend-config: { bucket = \"states\" }.",
		},
		{
			Name: "backend_config_file", Type: cty.String, File: true, Known: true,
			Doc: "A file with such settings, relative to the spec's folder; those of backend_config win.",
		},
		{
			Name: "lock_timeout", Type: cty.Number, Unit: Duration, Known: true,
			Doc: "How long to wait for Terraform's lock of a state that another process holds; the timeouts of a VM limit that, too. Without it, not at all.",
		},
		{
			Name: "shared", Type: cty.Map(cty.String), Form: Members, Known: true,
			Public: "addresses and IDs of resources are no secrets",
			Doc:    "The resources of the module that belong to all its VMs, and that no destroy of a VM removes: a list of addresses, or a map from addresses to IDs.",
		},
	},
}

var terraformVariables = Attr{
	Name: "variables", Type: cty.Map(cty.String), Sensitive: true,
	Doc: "Values of the variables of its Terraform module.",
}

var terraformVariablesJSON = Attr{
	Name: "variables_json", Type: cty.String, Form: JSONObject, Sensitive: true,
	Doc: "Further variables of its Terraform module, for values that are no texts, as a JSON object: jsonencode({ zones = [\"a\", \"b\"] }).",
}

var terraformOutputs = Attr{
	Name: "outputs", Type: cty.Map(cty.String), Known: true,
	Public: "names of outputs are no secrets",
	Doc:    "The outputs of its Terraform module that tell its attributes, by attribute: { address = \"vm_ip\", id = \"vm_id\" }.",
}
