package job

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Agent understands the program of a coding agent: its output, and how a session of it goes on.
type Agent interface {
	// Event reads a line of the standard output, one JSON object. What it does not know says nothing.
	Event(line []byte) Event
	// Resume returns a command that goes on with a session of another one.
	Resume(command []string, session string) []string
	// SessionHasFolder reports whether a session goes on in the folder alone that it began in.
	SessionHasFolder() bool
}

// Event holds the news in one line of an agent's output.
type Event struct {
	Session string // "": nothing
	Ended   bool   // the turn has ended
	Failed  string // why, if it has failed
	Limited bool   // it failed because its provider refused it for its rate
}

// Report holds the news of a whole run of an agent.
type Report struct {
	Session string // the first that it names
	Ended   bool
	Failed  string
	Limited bool
}

// Agents lists the names of the agents. The agent "command" is any program: its exit status alone
// says how it ended.
func Agents() []string { return []string{Plain, "claude", "codex", "gemini"} }

// Plain is the agent of any program.
const Plain = "command"

// AgentOf returns an agent by its name; nil: its exit status alone says how it ended.
func AgentOf(name string) Agent {
	switch name {
	case "claude":
		return claude{}
	case "codex":
		return codex{}
	case "gemini":
		return gemini{}
	default:
		return nil
	}
}

// longestEvent is the size of the longest line that is read: the result of a tool can be megabytes.
const longestEvent = 16 << 20

// Judge reads the output of an agent. Of several ends the last one counts.
func Judge(a Agent, output io.Reader) (Report, error) {
	var r Report
	in := bufio.NewReaderSize(output, 64<<10)
	for {
		line, err := readLine(in)
		if len(line) > 0 && line[0] == '{' {
			e := a.Event(line)
			if r.Session == "" {
				r.Session = e.Session
			}
			if e.Ended {
				r.Ended, r.Failed, r.Limited = true, e.Failed, e.Limited
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return r, nil
		case err != nil:
			return r, err
		}
	}
}

// readLine returns the next line without the white space around it; one that is too long is empty.
func readLine(in *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > longestEvent; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(line), err
		}
	}
}

// ReportOf reads what a job has written so far; nil: it is no agent's.
func (s Store) ReportOf(r Record) (*Report, error) { return s.reportFrom(r, 0) }

// reportFrom is ReportOf for what was written from a byte on.
func (s Store) reportFrom(r Record, from int64) (*Report, error) {
	a := AgentOf(r.Agent)
	if a == nil {
		return nil, nil //nolint:nilnil // the absence of a report is no failure
	}
	f, err := os.Open(s.Path(r.ID, "stdout"))
	if errors.Is(err, os.ErrNotExist) {
		return &Report{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	var report Report
	if _, err = f.Seek(from, io.SeekStart); err == nil {
		report, err = Judge(a, f)
	}
	if err != nil {
		return nil, fmt.Errorf("read the output of job %s: %w", r.ID, err)
	}
	return &report, nil
}

// with adds what the output of an agent says. A report that cannot be read is none: the run
// counts as one without a result.
func (o Outcome) with(report *Report, err error) Outcome {
	if err != nil {
		o.Warnings = append(o.Warnings, err.Error())
		report = &Report{}
	}
	o.Agent = report
	return o
}

// claude is Claude Code with -p --output-format stream-json --verbose.
type claude struct{}

// Event implements Agent. A subtype "success" says nothing: with is_error it is a failure.
func (claude) Event(line []byte) Event {
	var e struct {
		Type           string          `json:"type"`
		Subtype        string          `json:"subtype"`
		IsError        bool            `json:"is_error"`
		SessionID      string          `json:"session_id"`
		TerminalReason string          `json:"terminal_reason"`
		Result         json.RawMessage `json:"result"`
	}
	if json.Unmarshal(line, &e) != nil {
		return Event{}
	}
	event := Event{Session: e.SessionID}
	if e.Type == "result" {
		event.Ended = true
		if e.IsError || e.Subtype != "success" {
			event.Failed = "claude says " + e.Subtype
			if e.IsError {
				event.Failed += " with is_error"
			}
			event.Limited = isLimit(string(e.Result))
			if e.TerminalReason != "" {
				event.Failed += " (" + e.TerminalReason + ")"
			}
		}
	}
	return event
}

// Resume implements Agent.
func (claude) Resume(command []string, session string) []string {
	return append(without(command, "--resume", "--session-id"), "--resume", session)
}

// SessionHasFolder implements Agent: ~/.claude/projects has a folder for each.
func (claude) SessionHasFolder() bool { return true }

// codex is the Codex CLI with exec --json.
type codex struct{}

// Event implements Agent.
func (codex) Event(line []byte) Event {
	var e struct {
		Type     string          `json:"type"`
		ThreadID string          `json:"thread_id"`
		Error    json.RawMessage `json:"error"`
	}
	if json.Unmarshal(line, &e) != nil {
		return Event{}
	}
	switch e.Type {
	case "thread.started":
		return Event{Session: e.ThreadID}
	case "turn.completed":
		return Event{Ended: true}
	case "turn.failed":
		return Event{Ended: true, Failed: "codex says turn.failed", Limited: isLimit(string(e.Error))}
	default:
		return Event{}
	}
}

// Resume implements Agent. All other options stand before resume.
func (codex) Resume(command []string, session string) []string {
	if i := slices.Index(command, "resume"); i > 0 {
		command = command[:i]
	}
	command = slices.DeleteFunc(slices.Clone(command), func(arg string) bool { return arg == "-" })
	return append(command, "resume", session, "-")
}

// SessionHasFolder implements Agent: its sessions are found by their ID.
func (codex) SessionHasFolder() bool { return false }

// gemini is the Gemini CLI with -o stream-json.
type gemini struct{}

// Event implements Agent.
func (gemini) Event(line []byte) Event {
	var e struct {
		Type      string          `json:"type"`
		SessionID string          `json:"session_id"`
		Status    string          `json:"status"`
		Error     json.RawMessage `json:"error"`
	}
	if json.Unmarshal(line, &e) != nil {
		return Event{}
	}
	event := Event{}
	switch e.Type {
	case "init":
		event.Session = e.SessionID
	case "result":
		event.Ended = true
		if e.Status != "success" {
			event.Failed, event.Limited = "gemini says "+e.Status, isLimit(string(e.Error))
		}
	}
	return event
}

// Resume implements Agent.
func (gemini) Resume(command []string, session string) []string {
	return append(without(command, "--resume", "--session-id"), "--resume", session)
}

// SessionHasFolder implements Agent: ~/.gemini/tmp has a folder for each.
func (gemini) SessionHasFolder() bool { return true }

// without returns a command without some options and their values.
func without(command []string, options ...string) []string {
	var rest []string
	for i := 0; i < len(command); i++ {
		if slices.Contains(options, command[i]) {
			i++
			continue
		}
		rest = append(rest, command[i])
	}
	return rest
}
