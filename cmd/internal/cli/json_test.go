package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vmctl/internal/real"
	"vmctl/providers"
)

// documents decodes the output of a command, and demands that it holds only JSON documents.
func (e ending) documents() []map[string]any {
	e.t.Helper()
	var all []map[string]any
	d := json.NewDecoder(strings.NewReader(e.stdout))
	for {
		var doc map[string]any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			e.t.Fatalf("vmctl %s: no JSON: %v\n%s", e.args, err, e.stdout)
		}
		all = append(all, doc)
	}
}

// Every command writes one valid document, failing ones too.
func TestEveryCommandWritesJSON(t *testing.T) {
	real.Long(t)
	commands := [][]string{
		{"init"},
		{"validate"},
		{"fmt"},
		{"fmt", "--check"},
		{"plan"},
		{"plan", "--detailed-exitcode"},
		{"status"},
		{"show", "vm.dev"},
		{"output"},
		{"output", "port"},
		{"doctor"},
		{"version"},
		{"completion", "bash"},
		{"graph"},
		{"graph", "--plan"},
		{"graph", "--format=svg"},
		{"vm", "logs", "dev"},
		{"vm", "edit", "nothing"},
		{"disk", "list"},
		{"disk", "unlock", "dev"},
		{"import", "vm.dev", "theirs", "--auto-approve"},
		{"import", "--generate", "vm.other", "theirs"},
		{"import", "--compose", "main.vmctl.hcl"},
		{"apply", "--auto-approve"},
		{"destroy", "--auto-approve"},
		{"vm", "start", "dev"},
		{"vm", "stop", "dev"},
		{"vm", "restart", "dev"},
		{"vm", "exec", "dev", "true"},
		{"vm", "shell", "dev"},
		{"vm", "ssh-config", "dev"},
		{"apply"},
		{"show"},
		{"show", "nothing"},
		{"output", "nothing"},
		{"completion", "tcsh"},
		{"vm"},
		{"nonsense"},
		{},
		{"vm", "start", "nothing"},
		{"plan", "--nonsense"},
		{"plan", "--target=nothing"},
		{"plan", "surplus"},
		{"plan", "--log-level=loud"},
		{"apply", "--parallelism=0"},
		{"plan", "--env=NOT GOOD"},
		{"plan", "-C", "nowhere"},
		{"plan", "--var=x"},
		{"plan", "--var=unknown=1"},
	}
	for _, world := range []struct {
		name  string
		build func(*testing.T) *house
	}{
		{"nothing exists", func(t *testing.T) *house { return newHouse(t, withID+small) }},
		{"all exists", func(t *testing.T) *house {
			h := newHouse(t, withID+small)
			h.run("apply", "--auto-approve").exits(0)
			return h
		}},
		{"no id", func(t *testing.T) *house { return newHouse(t, small) }},
		{"mistakes", func(t *testing.T) *house { return newHouse(t, withID+"vm \"dev\" {\n  memory = \"8G\"\n}\n") }},
		{"no HCL", func(t *testing.T) *house { return newHouse(t, "vm {{{ \x1b") }},
		{"starts fail", func(t *testing.T) *house {
			h := newHouse(t, withID+small)
			h.memory.fail["start vm.dev"] = brokenStart()
			return h
		}},
		{"nothing can be read", func(t *testing.T) *house {
			h := newHouse(t, withID+small)
			h.memory.partial = providers.Refuse("no daemon answers", providers.SayVmctl("look: ", "doctor"))
			return h
		}},
		{"corrupt state", func(t *testing.T) *house {
			h := newHouse(t, withID+small)
			h.corrupt(`{"e":`)
			return h
		}},
	} {
		t.Run(world.name, func(t *testing.T) {
			for _, args := range commands {
				h := world.build(t)
				e := h.run(append([]string{"--json"}, args...)...)
				docs := e.documents()
				if bytes.ContainsRune([]byte(e.stdout), 0x1b) {
					t.Errorf("vmctl %s: an escape character in %q", e.args, e.stdout)
				}
				last := e.check(docs)
				streams := len(args) > 0 && slices.Contains([]string{"apply", "destroy", "vm", "disk", "import"}, args[0])
				if !streams && len(docs) != 1 || streams && len(docs) == 0 {
					t.Errorf("vmctl %s: %d documents:\n%s", e.args, len(docs), e.stdout)
				}
				if e.code == 0 && last["error"] != nil {
					t.Errorf("vmctl %s: an error with code 0:\n%s", e.args, e.stdout)
				}
			}
		})
	}
}

// The next commands are apart from the observations.
func TestAdviceAboutTheStateIsApart(t *testing.T) {
	h := newHouse(t, withID+small)
	h.corrupt(`{"e":`)
	problem := h.run("plan", "--json").exits(5).documents()[0]["error"].(map[string]any)
	next := problem["next"].([]any)
	if want := "vmctl state repair"; len(next) != 2 || next[1] != want {
		t.Errorf("next is %q, want %q at its end", next, want)
	}
	if message := problem["message"].(string); !strings.HasSuffix(message, "; nothing was changed") {
		t.Errorf("the message is %q", message)
	}
	h.run("plan").exits(5).warns("  next: to keep what can be read, and find by its marks what this project owns:\n  next: vmctl state repair\n")
	h.run("doctor").exits(1).says("vmctl state repair")
}

// check looks at the last document: a failure has a code, a message and lists.
func (e ending) check(docs []map[string]any) map[string]any {
	e.t.Helper()
	if len(docs) == 0 {
		return nil
	}
	last := docs[len(docs)-1]
	problem, ok := last["error"].(map[string]any)
	if !ok {
		return last
	}
	for _, key := range []string{"code", "message"} {
		if text, ok := problem[key].(string); !ok || text == "" {
			e.t.Errorf("vmctl %s: the error has no %s:\n%s", e.args, key, e.stdout)
		}
	}
	for _, key := range []string{"seen", "next"} {
		if _, ok := problem[key].([]any); !ok {
			e.t.Errorf("vmctl %s: the error's %s is no list:\n%s", e.args, key, e.stdout)
		}
	}
	if _, ok := last["diagnostics"].([]any); !ok {
		e.t.Errorf("vmctl %s: no diagnostics:\n%s", e.args, e.stdout)
	}
	if e.stderr == "" {
		e.t.Errorf("vmctl %s: nothing for people on standard error", e.args)
	}
	return last
}

// corrupt writes text in place of the state.
func (h *house) corrupt(text string) {
	h.t.Helper()
	if err := os.MkdirAll(h.data(), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.data(), "state.json"), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func TestApplyStreamsALinePerEvent(t *testing.T) {
	h := newHouse(t, withID+small)
	h.memory.fail["wait_ssh vm.dev"] = &providers.Problem{Outcome: providers.Timeout, Code: "no_ssh", Err: errors.New("too late")}
	e := h.run("apply", "--auto-approve", "--json").exits(4)
	var types []string
	for _, doc := range e.documents() {
		types = append(types, doc["type"].(string))
	}
	want := "plan step_started step_progress step_done step_started step_progress step_done step_started step_progress step_failed halted summary error"
	if got := strings.Join(types, " "); got != want {
		t.Errorf("lines are %s, want %s", got, want)
	}
	if lines := strings.Count(e.stdout, "\n"); lines != len(types) {
		t.Errorf("%d lines for %d documents", lines, len(types))
	}
}
