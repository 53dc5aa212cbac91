package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"vmctl/cmd/internal/cli"
	"vmctl/internal/real"
	"vmctl/providers"
)

// boot is console output that would harm a terminal: it has escape sequences and invalid
// UTF-8.
const boot = "\x1b[0;32m  OK  \x1b[0m Reached target\r\n\x1b]0;owned\x07\x1b[2J gone\nlogin: \xff"

func withConsole(t *testing.T, text string) *house {
	t.Helper()
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	h.memory.consoles = map[string]string{"demo.dev": text}
	return h
}

// row L52: the logs of a VM
func TestLogs(t *testing.T) {
	h := withConsole(t, boot)
	for _, options := range [][]string{nil, {"--tail=9"}} {
		if got := h.run(append([]string{"vm", "logs", "dev"}, options...)...).exits(0).stdout; got != boot {
			t.Errorf("into a pipe goes %q, want every byte: %q", got, boot)
		}
	}
	h.run("vm", "stop", "dev").exits(0)
	h.terminal = cli.Terminal{Out: true}
	want := "  OK   Reached target\n\\x1b]0;owned\\x07\\x1b[2J gone\nlogin: \\xff"
	if got := h.run("vm", "logs", "dev").exits(0).stdout; got != want {
		t.Errorf("a terminal gets %q, want %q", got, want)
	}
	docs := h.run("vm", "logs", "dev", "--json", "--tail=1").exits(0).documents()
	if docs[0]["address"] != "vm.dev" || docs[0]["text"] != "login: \ufffd" {
		t.Errorf("the document is %v", docs[0])
	}
}

func TestTailOfLogs(t *testing.T) {
	const lines = 300_000
	var all []string
	for i := range lines {
		all = append(all, fmt.Sprintf("line %d", i))
	}
	ended := strings.Join(all, "\n") + "\n" // over three megabytes
	for _, test := range []struct {
		text string
		tail int
		want string
	}{
		{ended, 0, ""},
		{ended, 1, "line 299999\n"},
		{ended, 2, "line 299998\nline 299999\n"},
		{strings.TrimSuffix(ended, "\n"), 2, "line 299998\nline 299999"},
		{ended, 250_000, strings.Join(all[50_000:], "\n") + "\n"},
		{ended, lines, ended},
		{ended, lines + 5, ended},
		{"", 3, ""},
		{"\n\n\n", 2, "\n\n"},
		{"one", 1, "one"},
	} {
		h := withConsole(t, test.text)
		if got := h.run("vm", "logs", "dev", fmt.Sprintf("--tail=%d", test.tail)).exits(0).stdout; got != test.want {
			t.Errorf("--tail=%d of %d bytes: %d bytes, want %d", test.tail, len(test.text), len(got), len(test.want))
		}
	}
}

// vm logs --follow shows new output, also after the console begins anew, and ends with the
// VM.
func TestFollowLogs(t *testing.T) {
	real.Long(t)
	for _, asJSON := range []bool{false, true} {
		h := withConsole(t, "before\none\n")
		reads := 0
		h.memory.asked = func() {
			reads++
			h.memory.mu.Lock()
			defer h.memory.mu.Unlock()
			switch reads {
			case 4:
				h.memory.consoles["demo.dev"] = "before\none\ntwo\n"
			case 6:
				h.memory.consoles["demo.dev"] = "again\n"
				for _, m := range h.memory.machines {
					m.state = providers.StateOff
				}
			}
		}
		if asJSON {
			var texts []any
			for _, doc := range h.run("vm", "logs", "dev", "--follow", "--tail=1", "--json").exits(0).documents() {
				texts = append(texts, doc["type"], doc["text"])
			}
			if got := fmt.Sprintf("%q", texts); got != `["log" "one\n" "log" "two\n" "log" "again\n"]` {
				t.Errorf("the documents are %s", got)
			}
			continue
		}
		if got := h.run("vm", "logs", "dev", "--follow", "--tail=1").exits(0).stdout; got != "one\ntwo\nagain\n" {
			t.Errorf("got %q", got)
		}
	}
}

func TestNoLogs(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("vm", "logs", "nothing").exits(3).warns(`"nothing" is not a resource of the spec.`)
	h.run("vm", "logs", "dev").exits(1).warns("read the console of vm.dev: it does not exist (not made yet)", "next: vmctl apply")
	h.run("apply", "--auto-approve").exits(0)
	h.run("vm", "logs", "dev", "-C", h.dir).exits(1).warns("read the console of vm.dev: nobody keeps it", "next: vmctl plan -C "+h.dir)
	h.run("vm", "logs", "dev", "--tail=-1").exits(3).warns("read --tail: it has to be 0 or more")
	h.memory.partial = providers.Refuse("no daemon answers", providers.SayVmctl("look: ", "doctor"))
	h.run("vm", "logs", "dev").exits(6).warns("it cannot be said what is there", "seen: no daemon answers")
}
