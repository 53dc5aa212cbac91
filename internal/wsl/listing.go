package wsl

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// row is a line of wsl.exe --list --verbose.
type row struct {
	name  string
	word  string // the run state as wsl.exe says it, which may be in any language
	state State  // "": the word is not known
}

func rowOf(rows []row, name string) *row {
	for i := range rows {
		if strings.EqualFold(rows[i].name, name) {
			return &rows[i]
		}
	}
	return nil
}

// rows returns the distributions that wsl.exe lists.
func (h Host) rows(ctx context.Context) ([]row, error) {
	text, err := h.call(ctx, "--list", "--verbose")
	if err != nil {
		var failed *statusError
		if errors.As(err, &failed) && saysNone(failed.said) {
			return nil, nil
		}
		return nil, err
	}
	rows, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("read wsl.exe --list --verbose: %w", err)
	}
	if err := h.translate(ctx, rows); err != nil {
		return nil, err
	}
	return rows, nil
}

// saysNone reports whether a failed listing says that there is no distribution. Older versions have no code
// for it.
func saysNone(said string) bool {
	return noneCode.MatchString(said) || strings.Contains(said, "Windows Subsystem for Linux has no installed distributions.")
}

// parse reads a listing: a header in any language, and one line for each distribution. wsl.exe shows no
// header alone: it fails if there is no distribution.
func parse(text string) ([]row, error) {
	if !strings.HasSuffix(text, "\n") {
		return nil, errors.New("it is cut: its last line has no end")
	}
	var rows []row
	header, defaults := false, 0
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, "\r ")
		switch m := rowPattern.FindStringSubmatch(line); {
		case line == "":
		case !header:
			if m != nil || !headerPattern.MatchString(line) {
				return nil, fmt.Errorf("its header is %q", line)
			}
			header = true
		case m == nil:
			return nil, fmt.Errorf("it has the line %q", line)
		case rowOf(rows, m[2]) != nil:
			return nil, fmt.Errorf("it has %s twice", m[2])
		default:
			if m[1] == "*" {
				defaults++
			}
			rows = append(rows, row{name: m[2], word: m[3], state: stateWords[m[3]]})
		}
	}
	switch {
	case len(rows) == 0:
		return nil, errors.New("it has no distribution")
	case defaults > 1:
		return nil, errors.New("it has several defaults")
	}
	return rows, nil
}

// translate gives the rows their states whose words are of another language than English: wsl.exe lists the
// names of those that run, and of those that run or are stopped. It fails if a distribution is neither.
func (h Host) translate(ctx context.Context, rows []row) error {
	if !slices.ContainsFunc(rows, func(r row) bool { return r.state == "" }) {
		return nil
	}
	running, err := h.names(ctx, rows, "--list", "--running", "--quiet")
	if err != nil {
		return err
	}
	if len(running) == 0 {
		if err := h.noneRuns(ctx, rows); err != nil {
			return err
		}
	}
	idle, err := h.names(ctx, rows, "--list", "--quiet")
	if err != nil {
		return err
	}
	meanings := map[string]State{}
	for i := range rows {
		r := &rows[i]
		if r.state == Busy {
			continue
		}
		state := Stopped
		if running[r.name] {
			state = Running
		}
		before, known := meanings[r.word]
		if !idle[r.name] || known && before != state || r.state != "" && r.state != state {
			return fmt.Errorf("wsl.exe --list does not tell whether %s runs: it is %q", r.name, r.word)
		}
		meanings[r.word], r.state = state, state
	}
	return nil
}

// noneRuns fails unless wsl.exe says that no distribution runs. An empty quiet listing alone proves nothing. In
// any language, wsl.exe says it as a failure without the code of an error, and names none.
func (h Host) noneRuns(ctx context.Context, rows []row) error {
	_, err := h.call(ctx, "--list", "--running")
	var failed *statusError
	switch {
	case err == nil:
		return errors.New("wsl.exe --list --running is not the same twice")
	case errors.As(err, &failed) && failed.said != "" && !strings.Contains(failed.said, "Wsl/"):
		if i := slices.IndexFunc(rows, func(r row) bool { return strings.Contains(failed.said, r.name) }); i >= 0 {
			return fmt.Errorf("wsl.exe --list --running lists %s, and fails: %w", rows[i].name, err)
		}
		return nil
	}
	return err
}

// names returns the names of a quiet listing, each of which the rows have.
func (h Host) names(ctx context.Context, rows []row, args ...string) (map[string]bool, error) {
	text, err := h.call(ctx, args...)
	if err != nil {
		return nil, err
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("read wsl.exe %s: it is cut: its last line has no end", strings.Join(args, " "))
	}
	all := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		name := strings.TrimSpace(line)
		if name == "" {
			continue
		}
		r := rowOf(rows, name)
		if r == nil || all[r.name] {
			return nil, fmt.Errorf("read wsl.exe %s: it has the line %q", strings.Join(args, " "), name)
		}
		all[r.name] = true
	}
	return all, nil
}

// decode returns an output of wsl.exe as text: it writes UTF-16LE, with or without a byte order mark, or
// UTF-8 if WSL_UTF8 is set. Anything else is an error.
func decode(output []byte) (string, error) {
	text := ""
	switch rest, marked := bytes.CutPrefix(output, []byte("\xff\xfe")); {
	case marked || bytes.IndexByte(output, 0) >= 0:
		if len(rest)%2 != 0 {
			return "", errors.New("it is cut within a character")
		}
		units := make([]uint16, len(rest)/2)
		for i := range units {
			units[i] = binary.LittleEndian.Uint16(rest[2*i:])
		}
		text = string(utf16.Decode(units))
	default:
		text = string(bytes.TrimPrefix(output, []byte("\xef\xbb\xbf")))
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, isGarbage) {
		return "", errors.New("it is no text")
	}
	return text, nil
}

// isGarbage reports whether a character is in no text of wsl.exe.
func isGarbage(r rune) bool {
	return r == unicode.ReplacementChar || r == '\ufeff' || r == '\ufffe' || unicode.IsControl(r) && !strings.ContainsRune("\r\n\t", r)
}
