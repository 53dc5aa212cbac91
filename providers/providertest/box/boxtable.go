package box

import (
	"vmctl/providers"
)

// attributes lists every attribute of a box.
var attributes = map[string]providers.Attribute{
	"in": {}, "label": {},
	"running": {Judge: live("opened or closed")},
	"content": {Judge: live("written at any time")},
	"paint":   {Judge: paint},
	"id":      {Computed: true},
}

// words has the words for each operation.
var words = map[string]providers.Words{
	opMake: {Doing: "making", Done: "made"}, opOpen: {Doing: "opening", Done: "opened"}, opClose: {Doing: "closing", Done: "closed"},
	opWrite: {Doing: "writing", Done: "written"}, opRemove: {Doing: "removing", Done: "removed"},
	opCheck: {Doing: "looking for work in it", Done: "without work in it"},
}
