package job

import (
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// again judges the edits that make a job due again.
var again = providers.Attribute{Judge: machine.Live("the job runs again")}

// kinds lists every attribute of a job block.
var kinds = map[spec.Kind]map[string]providers.Attribute{spec.Job: {
	"workspace": again, "agent": again, "command": again, "prompt": again, "triggers": again,
	"containment": again, "scope": again,
	"resume": again,
	"env":    {Judge: machine.Live("its next run gets it")},
	"id":     {Computed: true},
}}

// The operations on a job block.
const (
	opStart = "start"
	opAwait = "await"
)

// words has the words for each operation.
var words = map[string]providers.Words{
	opStart: {Doing: "starting the job", Done: "started"},
	opAwait: {Doing: "running", Done: "ended"},
}

// agentCommands has the command line of each agent, as its output has to be.
var agentCommands = map[string][]string{
	"claude": {"claude", "-p", "--output-format", "stream-json", "--verbose"},
	"codex":  {"codex", "exec", "--json", "-"},
	"gemini": {"gemini", "-o", "stream-json"},
}

// limitWords has what errors say, in small letters, when a provider refuses a request for its rate.
var limitWords = []string{
	"rate limit", "rate_limit", "ratelimit", "too many requests", "resource_exhausted", "overloaded_error", "error: 429", "status 429", "http 429",
}
