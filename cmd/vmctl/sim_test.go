package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vmctl/internal/process"
)

// simCommands returns script commands that look at the processes and files of a simulated
// host, and damage them.
//
//	processes           prints the VMs that run in this script's home, with their process IDs
//	kill9 VM            ends the process of a VM at once
//	rm-pid VM           removes its pid file
//	lose-state          removes the state and the journal
//	reboot              ends all processes, and lets what was recorded be of another boot
//	splice FILE OLD NEW replaces text in a file
//	untimed             prints what the last command wrote, without times, IDs and folders
//	outcome             prints of that only how it ended: steps side by side report in any order
func simCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"processes": func(ts *testscript.TestScript, _ bool, _ []string) {
			var lines []string
			for _, vm := range running(ts) {
				lines = append(lines, fmt.Sprintf("%s %d\n", vm.name, vm.id.PID))
			}
			slices.Sort(lines)
			fmt.Fprint(ts.Stdout(), strings.Join(lines, ""))
		},
		"kill9": func(ts *testscript.TestScript, _ bool, args []string) {
			end(ts, processOf(ts, args[0]))
		},
		"rm-pid": func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(os.Remove(pidFile(ts, args[0]))) },
		"lose-state": func(ts *testscript.TestScript, _ bool, _ []string) {
			for _, pattern := range []string{"state.json*", "journal-*"} {
				files, err := filepath.Glob(filepath.Join(ts.Getenv("DATA"), pattern))
				ts.Check(err)
				for _, file := range files {
					ts.Check(os.Remove(file))
				}
			}
		},
		"reboot": reboot,
		"untimed": func(ts *testscript.TestScript, _ bool, _ []string) {
			fmt.Fprint(ts.Stdout(), untimed(ts.ReadFile("stdout")+ts.ReadFile("stderr"), ts.Getenv("HOME")))
		},
		"outcome": func(ts *testscript.TestScript, _ bool, _ []string) {
			text := untimed(ts.ReadFile("stdout")+ts.ReadFile("stderr"), ts.Getenv("HOME"))
			from := ending.FindStringIndex(text)
			if from == nil {
				ts.Fatalf("it does not say how it ended:\n%s", text)
			}
			fmt.Fprint(ts.Stdout(), text[from[0]:])
		},
		"splice": func(ts *testscript.TestScript, _ bool, args []string) {
			path := ts.MkAbs(args[0])
			text, err := os.ReadFile(path)
			ts.Check(err)
			if !strings.Contains(string(text), args[1]) {
				ts.Fatalf("%s does not hold %q", args[0], args[1])
			}
			ts.Check(os.WriteFile(path, []byte(strings.Replace(string(text), args[1], args[2], 1)), 0o600))
		},
	}
}

// The parts of output that differ from one run to the next.
var (
	keptLogs  = regexp.MustCompile(`(?m)^ *seen: its logs are kept in .*\n`) // a VM that died early may have said nothing
	elapsed   = regexp.MustCompile(`\b(in|after) [0-9.]+(ms|s|m[0-9]+s)\b`)
	pid       = regexp.MustCompile(`\bpid [0-9]+`)
	starts    = regexp.MustCompile(`(start time|recorded was) [0-9]+`)
	instant   = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9:]{8} UTC|T[0-9:.]+Z)`)
	objectID  = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	collected = regexp.MustCompile(`pid [0-9]+ has ended, and its parent has not collected it`)
	heartbeat = regexp.MustCompile(`(?m)^.*: still .*, for .* of at most .*\n`)
	ending    = regexp.MustCompile(`(?m)^[A-Z][a-z]+ (failed|is complete): `)
	bootID    = regexp.MustCompile(`"boot_id": "[^"]*"`)
	shortened = regexp.MustCompile(`run/[0-9a-f]{12}`)
)

func untimed(text, home string) string {
	text = keptLogs.ReplaceAllString(heartbeat.ReplaceAllString(strings.ReplaceAll(text, home, "HOME"), ""), "")
	text = elapsed.ReplaceAllString(text, "$1 TIME")
	text = instant.ReplaceAllString(text, "INSTANT")
	text = objectID.ReplaceAllString(text, "ID")
	text = starts.ReplaceAllString(text, "$1 N")
	text = shortened.ReplaceAllString(text, "run/KEY")
	// init may have collected the process by now, or not.
	text = collected.ReplaceAllString(text, "no process has pid N")
	return pid.ReplaceAllString(text, "pid N")
}

// vm is the process of a simulated VM.
type vm struct {
	name string
	id   process.Identity
}

// running lists the VMs whose processes belong to a script's home.
func running(ts *testscript.TestScript) []vm {
	all, err := processesIn(ts.Getenv("HOME"))
	ts.Check(err)
	return all
}

func processesIn(home string) ([]vm, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var names []string
	match := func(argv []string) bool {
		for i, arg := range argv {
			if i > 0 && argv[i-1] == "--file" && strings.HasPrefix(arg, home+"/") {
				names = append(names, arg)
				return true
			}
		}
		return false
	}
	if _, err := (process.Host{}).Find(ctx, match); err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []vm
	for _, file := range slices.Compact(names) {
		found, err := process.Host{}.Find(ctx, process.HasArgument(file))
		if err != nil {
			return nil, err
		}
		for _, id := range found {
			all = append(all, vm{name: strings.TrimSuffix(filepath.Base(file), ".json"), id: id})
		}
	}
	return all, nil
}

// reboot leaves the host as a machine that lost its power during an apply.
func reboot(ts *testscript.TestScript, _ bool, _ []string) {
	for _, vm := range running(ts) {
		end(ts, vm.id)
	}
	files, err := filepath.Glob(filepath.Join(ts.Getenv("DATA"), "sim-*", "run", "*.pid"))
	ts.Check(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		ts.Check(err)
		text = bootID.ReplaceAll(text, []byte(`"boot_id": "00000000-0000-0000-0000-000000000000"`))
		ts.Check(os.WriteFile(file, text, 0o600))
	}
	owner := fmt.Sprintf(`{"pid":%d,"host":"ada","command":"vmctl apply","since":"2026-03-04T05:06:07Z"}`, os.Getpid())
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("DATA"), "lock.owner"), []byte(owner), 0o600))
}

// end ends a process at once, and returns when it is gone.
func end(ts *testscript.TestScript, id process.Identity) {
	_, err := process.Host{}.Force(id)
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ts.Check(process.Host{}.Wait(ctx, id))
}

// endAll ends the processes that a script has left, also after it failed.
func endAll(t *testing.T, home string) {
	all, err := processesIn(home)
	if err != nil {
		t.Error(err)
	}
	for _, vm := range all {
		var refused *process.RefusedError
		if _, err := (process.Host{}).Force(vm.id); err != nil && !errors.As(err, &refused) {
			t.Error(err)
		}
	}
}

// pidFile finds the pid file of a VM by the process that runs it.
func pidFile(ts *testscript.TestScript, name string) string {
	files, err := filepath.Glob(filepath.Join(ts.Getenv("DATA"), "sim-*", "run", "*.pid"))
	ts.Check(err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		ts.Check(err)
		var run struct{ Process process.Identity }
		ts.Check(json.Unmarshal(content, &run))
		for _, vm := range running(ts) {
			if vm.name == name && vm.id.PID == run.Process.PID {
				return file
			}
		}
	}
	ts.Fatalf("no pid file names the process of %s", name)
	return ""
}
