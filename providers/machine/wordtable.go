package machine

import "vmctl/providers"

// Words returns the words for an operation that several systems have; the zero Words: there are
// none.
func Words(op string) providers.Words { return words[op] }

var words = map[string]providers.Words{
	"clear":      {Doing: "clearing what is left of the last one", Done: "cleared"},
	OpDefine:     {Doing: "defining", Done: "defined"},
	OpDelete:     {Doing: "deleting", Done: "deleted"},
	OpDetach:     {Doing: "detaching", Done: "detached"},
	OpGrow:       {Doing: "growing", Done: "grown"},
	OpRecover:    {Doing: "recovering", Done: "recovered"},
	OpRedefine:   {Doing: "redefining", Done: "redefined"},
	OpStart:      {Doing: "starting", Done: "started"},
	OpStop:       {Doing: "stopping", Done: "stopped"},
	OpUnlock:     {Doing: "freeing the disk", Done: "freed"},
	OpUnmark:     {Doing: "taking its mark off", Done: "released"},
	"upload":     {Doing: "uploading its image", Done: "image uploaded"},
	"wait_ready": {Doing: "waiting for an answer", Done: "ready"},
	"wait_ssh":   {Doing: "waiting for SSH", Done: "ready for SSH"},
}
