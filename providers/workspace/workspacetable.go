package workspace

import (
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// kinds lists every attribute of a workspace.
var kinds = map[spec.Kind]map[string]providers.Attribute{spec.Workspace: {
	"vm": {}, "repo": {}, "branch": {}, "path": {},
	"create_branch": {}, "sync": {}, "hook": {}, "mount": {},
	"env":  {Judge: machine.Live("commands get it when they begin")},
	"id":   {Computed: true},
	"base": {Computed: true},
	"head": {Computed: true},

	"mount_path": {Computed: true},
}}

// words has the words for each operation.
var words = map[string]providers.Words{
	opMake:         {Doing: "checking out", Done: "checked out"},
	opWrite:        {Doing: "writing", Done: "written"},
	opRemove:       {Doing: "removing", Done: "removed"},
	opDiscard:      {Doing: "removing with its unsaved work", Done: "removed with its unsaved work"},
	opCheck:        {Doing: "seeing that it has no work of its own", Done: "has no work of its own"},
	opPush:         {Doing: "bringing this host's commits to it", Done: "has this host's commits"},
	opFetch:        {Doing: "bringing its commits to this host", Done: "its commits are on this host"},
	opMount:        {Doing: "mounting its folder on this host", Done: "mounted"},
	opRemount:      {Doing: "mounting its folder anew", Done: "mounted anew"},
	opUnmount:      {Doing: "unmounting its folder", Done: "unmounted"},
	opSave:         {Doing: "saving its work", Done: "saved"},
	opFetchLast:    {Doing: "bringing its commits to this host", Done: "its commits are on this host"},
	opRemoveSaved:  {Doing: "removing what is saved", Done: "removed, its work is saved"},
	opKeep:         {Doing: "saving its work, to bring it back", Done: "saved, to be brought back"},
	opRemoveKept:   {Doing: "removing what is saved", Done: "removed, its work is saved"},
	guard.OpUnmark: {Doing: "letting go of it", Done: "released"},
}
