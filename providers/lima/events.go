package lima

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// events tells what a host agent has reported of its present run.
type events struct {
	sshPort  uint16
	running  bool
	degraded []string // the reasons; nil: it is not
	exiting  bool
	ending   bool // it was asked to shut the guest down
}

// logLimit limits the part of a log that is read, its end (bytes).
const logLimit = 64 << 10

// readEvents reads the events of an instance's host agent, which Lima begins anew at each start.
func (p *Provider) readEvents(name string) (events, error) {
	var e events
	text, err := tail(p.path(name, eventsLog))
	if err != nil {
		return e, err
	}
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		var event struct {
			Status struct {
				Running      bool     `json:"running"`
				Degraded     bool     `json:"degraded"`
				Exiting      bool     `json:"exiting"`
				Errors       []string `json:"errors"`
				SSHLocalPort uint16   `json:"sshLocalPort"`
			} `json:"status"`
		}
		if json.Unmarshal(line, &event) != nil { // the first line may be cut, the last one half written
			continue
		}
		s := event.Status
		if s.SSHLocalPort != 0 {
			e.sshPort = s.SSHLocalPort
		}
		e.running, e.exiting = e.running || s.Running, e.exiting || s.Exiting
		if s.Degraded {
			e.degraded = append(e.degraded, s.Errors...)
		}
	}
	text, err = tail(p.path(name, agentLog))
	e.ending = err == nil && strings.Contains(string(text), "shutting down the host agent")
	return e, nil
}

// tail returns the end of a log, logLimit at most; nil: there is none.
func tail(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-logLimit)
	return io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
}

// lastWords returns the last lines of a host agent's log, in words. Those that QEMU has said come first: after them the host
// agent says little more than that it ends.
func (p *Provider) lastWords(name string) []string {
	const kept = 3
	ofQEMU := p.linesOfQEMU(name)
	ofQEMU = ofQEMU[max(0, len(ofQEMU)-kept):]
	all := slices.DeleteFunc(p.lastLines(name, kept), func(line string) bool { return slices.Contains(ofQEMU, line) })
	all = append(ofQEMU, all...)
	for i, line := range all {
		all[i] = "its log says: " + line
	}
	return all
}

// wordsOfQEMU begins each line of a host agent's log that QEMU has said.
const wordsOfQEMU = "qemu[stderr]: "

// linesOfQEMU returns the lines that QEMU has said among the last ones of a host agent's log.
func (p *Provider) linesOfQEMU(name string) []string {
	return slices.DeleteFunc(p.lastLines(name, 50), func(line string) bool { return !strings.HasPrefix(line, wordsOfQEMU) })
}

// lastLines returns that many last lines of a host agent's log.
func (p *Provider) lastLines(name string, lines int) []string {
	text, err := tail(p.path(name, agentLog))
	if err != nil {
		return []string{"it cannot be read: " + err.Error()}
	}
	var all []string
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		var said struct {
			Level, Msg, Error string
		}
		switch {
		case json.Unmarshal(line, &said) != nil:
			if s := strings.TrimSpace(string(line)); s != "" {
				all = append(all, s)
			}
		case (said.Level == "debug" || said.Level == "trace") && !strings.HasPrefix(said.Msg, "qemu["):
		case said.Error != "":
			all = append(all, said.Msg+": "+said.Error)
		default:
			all = append(all, said.Msg)
		}
	}
	return all[max(0, len(all)-lines):]
}
