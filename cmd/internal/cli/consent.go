package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"vmctl/planner"
)

// consent asks whether the plan of a round shall be carried out, unless the command
// itself names all of it. No answer is a no.
func (a *app) consent(ctx context.Context, m mission, r round, plan *planner.Plan) error {
	if m.named != nil && allNamed(m, plan) {
		return nil
	}
	steps := fmt.Sprintf("these %d steps", len(plan.Steps))
	if len(plan.Steps) == 1 {
		steps = "this step"
	}
	nothing := m.command + ": nothing was done: "
	if r.later {
		nothing = m.command + ": the rest was not done: "
	}
	return a.ask(ctx, question{
		text: "Apply " + steps + "?", command: m.command, nothing: nothing,
		approve: a.commandLine(m.command, m.plan, append([]string{"--auto-approve"}, m.names...)...),
	})
}

// question is a question that only "yes" answers.
type question struct {
	text    string
	command string // that asks
	nothing string // says that nothing was done, before the reason
	approve string // the command that does not ask
}

// ask asks a question. Any answer but yes, and none, is an error.
func (a *app) ask(ctx context.Context, q question) error {
	if !a.env.Terminal.In || a.global.json {
		return rejected("no_terminal", q.command+": ask for consent: standard input is no terminal", q.approve+" does not ask")
	}
	a.stdout.drain(ctx, 0) // the question comes after what it is about
	a.prompt("\n" + q.text + " Type \"yes\": ")
	answer, err := a.readLine(ctx)
	nothing := q.nothing
	switch {
	case err == nil && answer == "yes":
		return nil
	case err == nil:
		return newProblem(classInterrupted, "declined", nothing+"the answer was "+quoted(answer)+", not \"yes\"")
	case errors.Is(err, io.EOF), errors.Is(err, context.Canceled), errors.Is(err, syscall.EIO): // EIO: the terminal was closed
		return newProblem(classInterrupted, "interrupted", nothing+"there was no answer")
	default:
		return fmt.Errorf("read the answer: %w", err)
	}
}

func allNamed(m mission, plan *planner.Plan) bool {
	for _, s := range plan.Steps {
		if !m.named(plan.Changes[s.Change]) {
			return false
		}
	}
	return true
}

// prompt writes a question without ending its line. It goes to standard error:
// standard output may be a file.
func (a *app) prompt(text string) { a.stderr.keep(write(a.stderr, text)) }

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// readLine reads a line, or returns when ctx ends: the goroutine that waits for
// a terminal cannot be woken, and lives until the process exits.
func (a *app) readLine(ctx context.Context) (string, error) {
	type line struct {
		text string
		err  error
	}
	lines := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(a.env.Stdin).ReadString('\n')
		lines <- line{text: text, err: err}
	}()
	select {
	case <-ctx.Done():
		a.prompt("\n")
		return "", ctx.Err()
	case l := <-lines:
		answered := errors.Is(l.err, io.EOF) && strings.TrimSpace(l.text) != ""
		if l.err != nil && !answered {
			a.prompt("\n")
			return "", l.err
		}
		return strings.TrimSpace(l.text), nil
	}
}
