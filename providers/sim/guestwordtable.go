package sim

import "vmctl/providers"

// guestWords holds the words for the steps on files inside a guest.
var guestWords = map[string]providers.Words{
	opWrite:  {Doing: "writing", Done: "written"},
	opRemove: {Doing: "removing", Done: "removed"},
	opFlush:  {Doing: "letting go of it", Done: "let go of"},
}
