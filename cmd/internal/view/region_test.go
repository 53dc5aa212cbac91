package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"vmctl/cmd/internal/view"
	"vmctl/cmd/internal/view/screentest"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// stage is a terminal with progress on it.
type stage struct {
	*view.Progress
	*screentest.Terminal
	region view.Region
	start  time.Time
	text   strings.Builder // the lines alone
}

func newStage(columns, rows int, color bool) *stage {
	s := &stage{Terminal: screentest.New(columns, rows), start: noon()}
	s.region = view.Region{Size: s.Size, Color: color}
	s.Progress = &view.Progress{Screen: view.Screen{Columns: columns, Color: color}, Live: s.live, Silence: time.Second}
	return s
}

func (s *stage) live(lines []byte, now view.Frame) {
	s.text.Write(lines)
	s.out(s.region.Update(lines, now))
}

// say writes text of another writer to the same terminal.
func (s *stage) say(text string) {
	s.text.WriteString(text)
	s.out(s.region.Above([]byte(text)))
}

func (s *stage) out(p []byte) {
	if _, err := s.Write(p); err != nil {
		panic(err)
	}
}

func (s *stage) at(seconds int) time.Time { return s.start.Add(time.Duration(seconds) * time.Second) }

func (s *stage) begin(seconds int, step planner.Step) {
	s.Watch(executor.Event{Kind: executor.StepStarted, At: s.at(seconds), Step: step, Deadline: step.Timeout})
}

func (s *stage) hear(seconds int, step planner.Step, text string) {
	s.Watch(executor.Event{Kind: executor.StepProgress, At: s.at(seconds), Step: step, Text: text})
}

func (s *stage) done(seconds int, step planner.Step) {
	s.Watch(executor.Event{Kind: executor.StepDone, At: s.at(seconds), Step: step, How: providers.Done, Elapsed: 4 * time.Second})
}

// sound fails if the terminal received a sequence that it does not know.
func (s *stage) sound(t interface{ Errorf(string, ...any) }) {
	if len(s.Unknown) > 0 {
		t.Errorf("the terminal does not know %q", s.Unknown)
	}
}

func named(id int, key, op string, limit time.Duration) planner.Step {
	s := step(id, 0, creation("dev"), op, providers.PhaseUp, limit)
	if key != "" {
		s.Address = spec.Address{Kind: spec.VM, Name: "web", Key: key}
	}
	return s
}

// performance runs an apply up to its middle, and returns two of the running steps.
func performance(s *stage) (dev, stop planner.Step) {
	dev = named(1, "", "start", 10*time.Minute)
	ssh := named(2, "", "wait_ssh", 5*time.Minute)
	stop = named(3, "北京/数据库-with-a-name-that-is-long", "stop", 40*time.Second)
	hostile := named(4, "a\x1b[2J\u202e\xff", "start", 0)
	s.begin(0, dev)
	s.begin(1, stop)
	s.hear(1, stop, "asked it to shut down, waiting up to 30s")
	s.done(4, dev)
	s.begin(4, ssh)
	s.hear(9, ssh, "127.0.0.1:40022 accepts, and nobody answers yet\x1b]0;title\x07")
	s.begin(30, hostile)
	s.say("Warning: a remark of somebody else.\n")
	s.Tick(s.at(35))
	return ssh, stop
}

func TestARegionShowsWhatRuns(t *testing.T) {
	for _, columns := range []int{80, 40} {
		for _, color := range []bool{false, true} {
			name := fmt.Sprintf("region-%d", columns)
			s := newStage(columns, 24, color)
			performance(s)
			if color {
				golden(t, name+"-color", s.Styled())
			} else {
				golden(t, name, s.Text())
			}
			s.sound(t)
		}
	}
}

// The lines that stay are the log: the same lines as without a terminal.
func TestARegionLeavesTheLog(t *testing.T) {
	s := newStage(80, 24, false)
	ssh, stop := performance(s)
	s.Watch(executor.Event{Kind: executor.StepFailed, At: s.at(40), Step: stop, Failure: brokenStart(), Elapsed: 39 * time.Second})
	s.Watch(executor.Event{Kind: executor.Halted, At: s.at(41), Text: "interrupted: no further change begins", Interrupted: true})
	s.done(42, ssh)
	s.End()
	golden(t, "region-log", s.Text())
	if s.Text() != s.text.String() {
		t.Errorf("the screen is\n%s\nand the log\n%s", s.Text(), s.text.String())
	}
	s.sound(t)
}

func TestARegionIsNeverTallerThanHalfOfTheScreen(t *testing.T) {
	for rows, want := range map[int]string{
		3: "",
		4: "\n  30 steps under way\n",
		6: "\n  vm.web[\"00\"]  0s of 1m  starting\n  and 29 steps more\n",
		8: "\n  vm.web[\"00\"]  0s of 1m  starting\n  vm.web[\"01\"]  0s of 1m  starting\n  and 28 steps more\n",
	} {
		s := newStage(80, rows, false)
		for i := range 30 {
			s.begin(0, named(i, fmt.Sprintf("%02d", i), "start", time.Minute))
		}
		log := "vm.web[\"29\"]: starting (at most 1m)\n"
		_, got, _ := strings.Cut(s.Text(), log)
		if got != want {
			t.Errorf("of %d rows it takes\n%q, want\n%q", rows, got, want)
		}
	}
}

// The screen may change its size between any two drawings, in either of the ways of
// terminals, and the log is whole.
func TestARegionSurvivesEverySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(80, 24, rapid.Bool().Draw(t, "color"))
		reflow := rapid.Bool().Draw(t, "reflow")
		if rapid.Bool().Draw(t, "a terminal with an own idea of widths") {
			s.Cells = func(r rune) int {
				if r < 0x80 {
					return 1
				}
				return 2
			}
		}
		names := rapid.SliceOfNDistinct(rapid.String(), 1, 12, rapid.ID[string]).Draw(t, "names")
		for i, name := range names {
			s.begin(i, named(i, "k"+name, "start", time.Minute))
			s.say("somebody else says something\n")
			if rapid.Bool().Draw(t, "resize") {
				columns, rows := rapid.IntRange(2, 200).Draw(t, "columns"), rapid.IntRange(1, 60).Draw(t, "rows")
				if reflow {
					s.Reflow(columns, rows)
				} else {
					s.Crop(columns, rows)
				}
			}
			s.Tick(s.at(i))
		}
		s.End()
		log := screentest.New(10_000, 100)
		if _, err := log.Write([]byte(s.text.String())); err != nil {
			t.Fatal(err)
		}
		if unbroken(s.String()) != unbroken(log.String()) {
			t.Fatalf("what stays is\n%s\nwant\n%s", s.String(), log.String())
		}
		s.sound(t)
	})
}

// unbroken returns text without its spaces and line ends: the terminal decides where lines
// break.
func unbroken(text string) string { return strings.Join(strings.Fields(text), "") }

// The columns keep their width when the step with the widest address has ended.
func TestARegionIsCalm(t *testing.T) {
	s := newStage(80, 24, false)
	wide, dev := named(1, "a-long-key", "start", time.Minute), named(2, "", "start", time.Minute)
	s.begin(0, wide)
	s.begin(0, dev)
	s.done(4, wide)
	want := "\n\n  vm.dev                4s of 1m  starting\n"
	if got := s.Text(); !strings.HasSuffix(got, want) {
		t.Errorf("the screen is\n%s, want at its end\n%s", got, want)
	}
}

// The user answers a question on its own line: nothing is drawn below it until its line has
// an end.
func TestARegionWaitsForTheEndOfALine(t *testing.T) {
	s := newStage(80, 24, false)
	start := named(1, "", "start", time.Minute)
	s.begin(0, start)
	s.say("Go on? ")
	s.Tick(s.at(5))
	if got := s.Text(); got != "vm.dev: starting (at most 1m)\nGo on?\n" {
		t.Errorf("while it asks the screen is\n%s", got)
	}
	s.say("yes\n")
	s.Tick(s.at(7))
	if got := s.Text(); got != "vm.dev: starting (at most 1m)\nGo on? yes\n\n  vm.dev  7s of 1m  starting\n" {
		t.Errorf("after the answer the screen is\n%s", got)
	}
}

func TestWithoutATerminalNothingIsTold(t *testing.T) {
	var r view.Region
	s := newStage(80, 24, false)
	s.Live = func(lines []byte, now view.Frame) { s.out(r.Update(lines, now)) }
	performance(s)
	if strings.ContainsRune(s.Text(), '\n') && strings.Contains(s.Text(), "of 10m") {
		t.Errorf("something is drawn:\n%s", s.Text())
	}
}

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "ümlaut": 6, "漢字": 4, "e\u0301": 1, "…": 1, "｡": 1, "Ａ": 2, "❤\ufe0f": 2, "🦀": 2,
	} {
		if got := view.Width(text); got != want {
			t.Errorf("Width(%q) is %d, want %d", text, got, want)
		}
	}
}
