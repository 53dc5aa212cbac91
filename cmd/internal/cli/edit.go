package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/atomicfile"
	"vmctl/spec"
)

type editDocument struct {
	FormatVersion string `json:"format_version"`
	Address       string `json:"address"`
	File          string `json:"file"`
	Line          int    `json:"line"`    // of the block, before
	Written       bool   `json:"written"` // false: it was left as it is, or emptied
}

func (a *app) editCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "edit NAME",
		Short: "Edit the file of a VM's block",
		Long: "Open the file that declares a VM, at its line, in the editor that VISUAL or EDITOR\n" +
			"names (else vi). When the editor has ended, vmctl checks the new text together with\n" +
			"all other files. If it has mistakes, the file stays as it was, and you can edit the\n" +
			"text again. If you change nothing or empty the file, nothing is written.\n\n" +
			"The editor's command is split as a shell would split it; nothing in it is expanded:\n" +
			"EDITOR='code --wait'.",
		Args: one("the name of a VM"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.edit(cmd.Context(), args[0]) },
	}
}

// draft is a copy of a spec file in a private folder, for the user to edit.
type draft struct {
	address spec.Address
	config  *spec.Config
	file    string // the file of the spec; if that is a link, its target
	name    string // the path by which the spec knows it
	line    int
	was     []byte
	copy    string // path
}

func (a *app) edit(ctx context.Context, name string) (err error) {
	if !a.env.Terminal.In {
		return rejected("no_terminal", "vm edit: open an editor: standard input is no terminal",
			"run it on a terminal, or change the files in another way: "+a.commandLine("validate", planFlags{})+" checks them")
	}
	editor, err := a.editor()
	if err != nil {
		return err
	}
	d, err := a.draft(name)
	if err != nil {
		return err
	}
	kept := false // whether the draft stays: it may hold text that is not in the file
	defer func() {
		if !kept {
			err = errors.Join(err, os.RemoveAll(filepath.Dir(d.copy)))
		}
	}()
	for line := d.line; ; {
		text, err := a.typedIn(ctx, editor, d, line)
		if err != nil {
			kept = d.changed()
			return d.keeping(err)
		}
		switch {
		case len(bytes.TrimSpace(text)) == 0:
			return a.edited(a.untouched(d), "It was emptied, which calls the edit off: nothing was written.")
		case bytes.Equal(text, d.was):
			return a.edited(a.untouched(d), "Nothing was changed, and nothing was written.")
		}
		diags, files := a.tried(d, text)
		if !diags.HasErrors() {
			kept = true
			if err := a.takeOver(d, text); err != nil {
				return err
			}
			a.warn(diags, files)
			kept = false
			doc := a.untouched(d)
			doc.Written = true
			return a.edited(doc, "Wrote "+a.short(d.name)+".")
		}
		if !a.askAgain(ctx, diags, files) {
			kept = true
			return a.notTaken(d, diags, files)
		}
		line = firstLine(diags, d.name, d.line)
	}
}

// changed reports whether the user changed the draft.
func (d draft) changed() bool {
	now, err := os.ReadFile(d.copy)
	return err == nil && !bytes.Equal(now, d.was)
}

// keeping adds the path of a changed draft to an error.
func (d draft) keeping(err error) error {
	if !d.changed() {
		return err
	}
	e, ok := errors.AsType[*problem](err)
	if !ok {
		e = newProblem(classFailed, "editor_failed", err.Error())
		e.err = err
	}
	e.Next = append(e.Next, "what you wrote is in "+d.copy)
	return e
}

// draft copies the file that declares a VM.
func (a *app) draft(name string) (draft, error) {
	config, err := a.load()
	if err != nil {
		return draft{}, err
	}
	addr, err := blockOf(config, name)
	if err != nil {
		return draft{}, err
	}
	r, _ := config.Resource(addr)
	d := draft{address: addr, config: config, name: r.Range.Filename, file: r.Range.Filename, line: r.Range.Start.Line}
	if real, err := filepath.EvalSymlinks(d.file); err == nil {
		d.file = real // the file is replaced, not the link to it
	}
	if d.was, err = os.ReadFile(d.file); err != nil {
		return draft{}, fmt.Errorf("edit %s: %w", addr, err)
	}
	dir, err := os.MkdirTemp(a.getenv("TMPDIR"), "vmctl-edit-")
	if err != nil {
		return draft{}, fmt.Errorf("edit %s: %w", addr, err)
	}
	d.copy = filepath.Join(dir, filepath.Base(d.name))
	if err := os.WriteFile(d.copy, d.was, 0o600); err != nil {
		return draft{}, errors.Join(fmt.Errorf("edit %s: %w", addr, err), os.RemoveAll(dir))
	}
	return d, nil
}

// blockOf returns the VM whose block a name means, the first one of a for_each. It fails if
// the name means several blocks.
func blockOf(c *spec.Config, name string) (spec.Address, error) {
	all, err := vmsOf(&project{config: c}, []string{name})
	if err != nil {
		return spec.Address{}, err
	}
	if slices.ContainsFunc(all, func(addr spec.Address) bool { return addr.Block() != all[0].Block() }) {
		return spec.Address{}, severalError(name, all)
	}
	return all[0], nil
}

// tried loads the spec with text in place of the draft's file, and returns the diagnostics.
func (a *app) tried(d draft, text []byte) (hcl.Diagnostics, map[string]*hcl.File) {
	source := d.config.Source()
	source.Files[filepath.Base(d.name)] = string(text)
	source.Variables = "" // the inputs give them, and the file may declare others now
	config, diags := a.readSpec(&source)
	return diags, config.Files()
}

// takeOver replaces the file as a whole. It fails if somebody else changed the file
// meanwhile.
func (a *app) takeOver(d draft, text []byte) error {
	info, err := os.Stat(d.file)
	if err != nil {
		return fmt.Errorf("edit %s: %w", d.address, err)
	}
	now, err := os.ReadFile(d.file)
	if err != nil {
		return fmt.Errorf("edit %s: %w", d.address, err)
	}
	if !bytes.Equal(now, d.was) {
		return newProblem(classRefused, "changed_meanwhile", "edit "+d.address.String()+": nothing was written: "+a.short(d.name)+" was changed meanwhile",
			"what you wrote is in "+d.copy)
	}
	if err := atomicfile.Write(d.file, text, info.Mode().Perm()); err != nil {
		e := newProblem(classFailed, "not_written", "edit "+d.address.String()+": "+err.Error(), "what you wrote is in "+d.copy)
		e.err = err
		return e
	}
	return nil
}

// notTaken returns the error for a draft with mistakes: the file stays as it was, and the
// draft is kept.
func (a *app) notTaken(d draft, diags hcl.Diagnostics, files map[string]*hcl.File) error {
	e := newProblem(classRejected, "invalid_spec", "edit "+d.address.String()+": nothing was written: the spec would have mistakes: "+summaries(diags),
		"what you wrote is in "+d.copy)
	if a.global.json {
		e.err = a.mistakes(diags, files)
	}
	return e
}

func (a *app) untouched(d draft) editDocument {
	return editDocument{FormatVersion: view.FormatVersion, Address: d.address.String(), File: a.short(d.name), Line: d.line}
}

func (a *app) edited(doc editDocument, text string) error {
	a.show(doc, func(s view.Screen) {
		view.Note(s, text)
		if doc.Written {
			view.Note(s, "Next: "+a.commandLine("plan", planFlags{}))
		}
	})
	return nil
}

// firstLine returns the line of the first mistake in a file; without one it returns its last
// argument.
func firstLine(diags hcl.Diagnostics, file string, or int) int {
	for _, d := range diags {
		if d.Severity == hcl.DiagError && d.Subject != nil && d.Subject.Filename == file {
			return d.Subject.Start.Line
		}
	}
	return or
}
