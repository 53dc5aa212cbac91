package terraform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"vmctl/providers"
)

// messages reads the lines that Terraform writes with -json. They hold no value of an attribute.
type messages struct {
	log     providers.Log // nil: nobody listens
	partial []byte
	reasons map[string]string // by address, of planned changes
	errors  []diagnostic
}

// diagnostic is an error that Terraform told.
type diagnostic struct {
	address string // of the resource; "": of none
	text    string // with the address
}

// message is one line.
type message struct {
	Type   string `json:"type"`
	Text   string `json:"@message"`
	Change struct {
		Resource struct {
			Addr string `json:"addr"`
		} `json:"resource"`
		Reason string `json:"reason"`
	} `json:"change"`
	Hook struct {
		Resource struct {
			Addr string `json:"addr"`
		} `json:"resource"`
		Action string `json:"action"`
	} `json:"hook"`
	Diagnostic struct {
		Severity string `json:"severity"`
		Summary  string `json:"summary"`
		Detail   string `json:"detail"`
		Address  string `json:"address"`
		Range    struct {
			Filename string `json:"filename"`
			Start    struct {
				Line int `json:"line"`
			} `json:"start"`
		} `json:"range"`
	} `json:"diagnostic"`
}

// Write takes a part of the output.
func (m *messages) Write(text []byte) (int, error) {
	m.partial = append(m.partial, text...)
	for {
		line, rest, whole := bytes.Cut(m.partial, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		m.line(line)
		m.partial = append([]byte(nil), rest...)
	}
}

func (m *messages) line(line []byte) {
	var got message
	if json.Unmarshal(line, &got) != nil {
		return
	}
	switch got.Type {
	case "planned_change":
		if got.Change.Reason != "" {
			if m.reasons == nil {
				m.reasons = map[string]string{}
			}
			m.reasons[got.Change.Resource.Addr] = got.Change.Reason
		}
	case "apply_start":
		m.say(fmt.Sprintf("%s: %s", got.Hook.Resource.Addr, doing(got.Hook.Action)))
	case "diagnostic":
		if got.Diagnostic.Severity == "error" {
			text := got.Diagnostic.Summary
			switch where := got.Diagnostic.Range; {
			case got.Diagnostic.Address != "":
				text = got.Diagnostic.Address + ": " + text
			case where.Filename != "":
				text = fmt.Sprintf("%s:%d: %s", where.Filename, where.Start.Line, text)
			}
			if detail := strings.Join(strings.Fields(got.Diagnostic.Detail), " "); detail != "" {
				text += ": " + detail
			}
			m.errors = append(m.errors, diagnostic{got.Diagnostic.Address, masked(text)})
		}
	}
}

func doing(action string) string {
	switch action {
	case "create":
		return "creating"
	case "update":
		return "changing"
	case "delete":
		return "destroying"
	default:
		return action
	}
}

func (m *messages) say(text string) {
	if m.log != nil {
		m.log(providers.Progress{Text: text})
	}
}

// failure returns the error of a command, with what Terraform said.
func (m *messages) failure(err error) error {
	if len(m.errors) == 0 {
		return err
	}
	return &saidError{diagnostics: m.errors, err: err}
}

// saidError is the failure of a command of Terraform that said why.
type saidError struct {
	diagnostics []diagnostic
	err         error
}

// Error returns what Terraform said.
func (e *saidError) Error() string { return strings.Join(e.lines(), "; ") }

// lines returns what Terraform said, a line each.
func (e *saidError) lines() []string {
	var all []string
	for _, d := range e.diagnostics {
		all = append(all, d.text)
	}
	return all
}

// Unwrap returns the failure of the command.
func (e *saidError) Unwrap() error { return e.err }

// said returns what Terraform said in an error, a line each.
func said(err error) []string {
	var s *saidError
	if errors.As(err, &s) {
		return s.lines()
	}
	return nil
}
