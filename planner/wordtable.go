package planner

import "vmctl/providers"

// words holds the words for the steps that write a record and call no provider.
var words = map[string]providers.Words{
	OpForget: {Doing: "forgetting its record", Done: "forgotten"},
	OpRecord: {Doing: "writing its record", Done: "recorded"},
	OpSettle: {Doing: "settling what an earlier run left", Done: "settled"},
}
