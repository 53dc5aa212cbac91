# What no plan may do without a person: conftest test plan.json, where vmctl plan --format=terraform-json >plan.json.
package main

import rego.v1

deny contains message if {
	some change in input.resource_changes
	"delete" in change.change.actions
	message := sprintf("%s would be %s", [change.address, fate(change)])
}

deny contains message if {
	some change in input.resource_changes
	change.type == "vm"
	some forward in change.change.after.port_forward
	forward.host_ip == "0.0.0.0"
	message := sprintf("%s would be reached from everywhere", [change.address])
}

fate(change) := "replaced" if "create" in change.change.actions

fate(change) := "destroyed" if not "create" in change.change.actions
