package view_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

func TestJSONIsSafeToLookAt(t *testing.T) {
	var out bytes.Buffer
	if err := view.Line(&out, "ü 漢字 <&> \x1b[2J \x7f \u009b2J \u202e \u200b \U000e0041 \xff"); err != nil {
		t.Fatal(err)
	}
	want := `"ü 漢字 <&> \u001b[2J \u007f \u009b2J \u202e \u200b \udb40\udc41 \ufffd"` + "\n"
	if out.String() != want {
		t.Errorf("it is\n%s\nwant\n%s", out.String(), want)
	}
}

func TestJSONMeansTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		var out bytes.Buffer
		if err := view.JSON(&out, map[string]string{text: text}); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("%q holds %U", out.String(), r)
			}
		}
		var got map[string]string
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got[text] != text {
			t.Fatalf("%q is read as %q (%v)", text, got, err)
		}
	})
}

// Text of a guest or a host never reaches a terminal unescaped. Here it is in every place of
// an event and of a summary that can hold it.
func TestHostileTextIsEscapedInEveryView(t *testing.T) {
	hostile := "\x1b]0;t\x07\x1b[2J\u009b2J\r\n\t\b\x7f\u202e\u2066\u200b\U000e0041\xff\xc0\u00a0"
	failure := &providers.Problem{Outcome: providers.Failed, Code: hostile, Seen: []string{hostile}, Next: providers.Say(hostile), Err: textError(hostile)}
	rename := named(1, hostile, "start", 0)
	rename.Op, rename.Words = "start"+hostile, providers.Words{Doing: "starting" + hostile, Done: "started" + hostile}
	rename.Args = arguments{{hostile, hostile}}
	var events []executor.Event
	for _, kind := range []executor.EventKind{
		executor.StepStarted, executor.StepProgress, executor.StepDone, executor.StepStarted, executor.StepFailed,
		executor.StepStarted, executor.StepWarned, executor.StepStarted, executor.Halted,
	} {
		events = append(events, executor.Event{
			Kind: kind, Step: rename, At: noon(), Text: hostile, Evidence: []string{hostile}, Failure: failure, Interrupted: true,
		})
	}
	s := newStage(80, 50, true)
	for _, e := range events {
		s.Watch(e)
	}
	s.Halt(view.Screen{W: s}, events[len(events)-1])
	result := []executor.StepResult{{Step: rename, Failure: failure, How: providers.How(hostile)}}
	view.Summary(view.Screen{W: s, Columns: 80, Color: true},
		executor.Summary{Done: result, Failed: result, Warned: result, NotRun: []planner.Step{rename}, Down: []spec.Address{rename.Address}},
		view.SummaryOptions{Command: "Apply", Next: []string{hostile}})
	problem := view.ProblemDocument{Code: hostile, Message: hostile, Seen: []string{hostile}, Next: []string{hostile}}
	view.Failed(view.Screen{W: s}, problem)
	view.Warning(view.Screen{W: s}, hostile)
	view.Note(view.Screen{W: s}, hostile)
	s.sound(t)
	for _, event := range events {
		var out bytes.Buffer
		if err := view.Line(&out, view.EventJSON(event, view.OwnFlags{})); err != nil {
			t.Fatal(err)
		}
		if strings.Count(out.String(), "\n") != 1 || strings.ContainsFunc(strings.TrimSuffix(out.String(), "\n"), unprintable) {
			t.Errorf("an event is %q", out.String())
		}
	}
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

type textError string

func (e textError) Error() string { return string(e) }
