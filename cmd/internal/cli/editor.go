package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/hashicorp/hcl/v2"

	"vmctl/internal/procenv"
	"vmctl/internal/run"
	"vmctl/internal/shellword"
)

// editor returns the words of the user's editor command: VISUAL, else EDITOR, else vi.
func (a *app) editor() ([]string, error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		text := a.getenv(name)
		words, err := shellword.Split(text)
		if err != nil {
			return nil, rejected("no_editor", "read "+name+"="+quoted(text)+": "+err.Error())
		}
		if len(words) > 0 {
			return words, nil
		}
	}
	return []string{"vi"}, nil
}

// typedIn opens a draft in the editor, and returns its text afterwards.
func (a *app) typedIn(ctx context.Context, editor []string, d draft, line int) ([]byte, error) {
	c := run.Command{
		Args: append(editor[:len(editor):len(editor)], opened(editor[0], d.copy, line)...), Env: procenv.WithoutVariables(a.env.Environ), Dir: a.env.Dir,
	}
	if a.global.json { // standard output is for the document alone
		c.Stdout = a.env.Stderr
	}
	status, err := a.attended(ctx, c)
	next := []string{"name an editor: EDITOR=nano " + a.commandLine("vm edit", planFlags{}, d.address.String())}
	switch {
	case ctx.Err() != nil:
		return nil, newProblem(classInterrupted, "interrupted", "edit "+d.address.String()+": nothing was written: it was interrupted")
	case errors.Is(err, run.ErrNotFound), errors.Is(err, run.ErrNotExecutable):
		return nil, rejected("no_editor", "edit "+d.address.String()+": "+err.Error(), next...)
	case err != nil:
		return nil, fmt.Errorf("edit %s: nothing was written: %w", d.address, err)
	case status != 0:
		return nil, newProblem(classFailed, "editor_failed", fmt.Sprintf("edit %s: nothing was written: %s ended with status %d", d.address, editor[0], status))
	}
	text, err := os.ReadFile(d.copy)
	if err != nil {
		return nil, fmt.Errorf("edit %s: nothing was written: %w", d.address, err)
	}
	return text, nil
}

// opened returns the arguments with which an editor opens a file at a line. An unknown editor
// opens it at its beginning.
func opened(editor, file string, line int) []string {
	at := strconv.Itoa(line)
	switch filepath.Base(editor) {
	case "vi", "vim", "nvim", "view", "nano", "pico", "emacs", "emacsclient", "micro", "kak", "joe", "jed", "mg", "ne":
		return []string{"+" + at, file}
	case "hx", "helix", "subl", "zed":
		return []string{file + ":" + at}
	case "code", "codium", "cursor":
		return []string{"--goto", file + ":" + at}
	default:
		return []string{file}
	}
}

// askAgain shows mistakes, and asks whether to open the editor again.
func (a *app) askAgain(ctx context.Context, diags hcl.Diagnostics, files map[string]*hcl.File) bool {
	if a.global.json {
		return false
	}
	a.warn(diags, files)
	if !a.env.Terminal.In {
		return false
	}
	a.prompt("\nEdit again? Type \"yes\": ")
	answer, err := a.readLine(ctx)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	return answer == "yes"
}
