package main

import (
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

var jobID = regexp.MustCompile(`"id": "(j-[0-9a-f]+)"`)

// jobCommands returns the commands of scripts about jobs: job-id puts the ID that the last command
// wrote as JSON into the variable JOB.
func jobCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"job-id": func(ts *testscript.TestScript, _ bool, _ []string) {
			found := jobID.FindStringSubmatch(ts.ReadFile("stdout"))
			if found == nil {
				ts.Fatalf("no ID of a job in the output")
			}
			ts.Setenv("JOB", found[1])
		},
	}
}
