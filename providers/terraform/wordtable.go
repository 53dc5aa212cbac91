package terraform

import "vmctl/providers"

// words has the words for each operation.
var words = map[string]providers.Words{
	opApply:   {Doing: "applying the Terraform module", Done: "applied"},
	opDestroy: {Doing: "destroying by Terraform", Done: "destroyed"},
	opWaitSSH: {Doing: "waiting for SSH", Done: "ready"},
	opRelease: {Doing: "letting go of the workspace", Done: "released"},
}
