package cli

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/providers"
	"vmctl/providers/guest"
)

type copyDocument struct {
	FormatVersion string   `json:"format_version"`
	Files         int      `json:"files"`
	Bytes         int64    `json:"bytes"`
	Left          []string `json:"left"`
}

func (a *app) copyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cp SOURCE TARGET",
		Short: "Copy a file or a folder into a VM that runs, or out of it",
		Long: "Copy a file or a folder into a VM that runs, or out of it. NAME:PATH is a path in a VM,\n" +
			"absolute or relative to the home of the user of vm shell: one of the two is such a path.\n" +
			"A target that is a folder gets the source in it. Modes and symbolic links are kept,\n" +
			"owners are not; sockets, pipes and devices are left out and named.",
		Args: between(2, 2, "a source and a target"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.copy(cmd.Context(), args[0], args[1]) },
	}
}

// copyPlace is a path, in a VM or on this host.
type copyPlace struct{ vm, path string }

// copyPlaceOf reads NAME:PATH. What begins like a path, or has no colon, is on this host.
func copyPlaceOf(text string) copyPlace {
	if text == "" || strings.HasPrefix(text, ".") || strings.HasPrefix(text, "/") || filepath.IsAbs(text) {
		return copyPlace{path: text}
	}
	at := strings.Index(text, ":")
	if end := strings.Index(text, `"]:`); end >= 0 {
		at = end + len(`"]`)
	}
	if at <= 0 {
		return copyPlace{path: text}
	}
	inside := text[at+1:]
	if inside == "" {
		inside = "."
	}
	return copyPlace{vm: text[:at], path: inside}
}

func (a *app) copy(ctx context.Context, source, target string) error {
	from, to := copyPlaceOf(source), copyPlaceOf(target)
	if (from.vm == "") == (to.vm == "") {
		return rejected("usage", "vm cp copies between this host and one VM",
			"name a path in a VM as NAME:PATH: vmctl vm cp notes.txt dev:/tmp/", "a path of this host that has a colon begins with ./")
	}
	here := from.path
	if from.vm != "" {
		here = to.path
	}
	if !filepath.IsAbs(here) {
		here = filepath.Join(a.env.Dir, here)
	}
	var done guest.Copied
	var failed error
	err := a.inside(ctx, visit{
		vm: from.vm + to.vm, command: "vmctl vm cp", program: "cp",
		way: func(v observedAddress) (func() (int, error), error) {
			values, _, err := a.visitor(v)
			if err != nil {
				return nil, err
			}
			g, err := a.guestAs(ctx, v, values)
			return func() (int, error) {
				done, failed = copyBetween(ctx, g, from, to, here)
				return 0, nil
			}, err
		},
	})
	switch {
	case err != nil:
		return err
	case failed != nil && ctx.Err() != nil:
		return failed
	case failed != nil:
		e := newProblem(classFailed, "copy", failed.Error(), "what was copied so far may be there: repeat the command once the cause is gone")
		e.err = failed
		return e
	}
	a.copied(done)
	return nil
}

// copyBetween copies, and closes the guest.
func copyBetween(ctx context.Context, g providers.Guest, from, to copyPlace, here string) (done guest.Copied, err error) {
	defer func() { err = errors.Join(err, g.Close()) }()
	if from.vm != "" {
		return guest.CopyOut(ctx, g, from.path, here)
	}
	return guest.CopyIn(ctx, g, here, to.path)
}

// copied reports a copy.
func (a *app) copied(done guest.Copied) {
	if a.global.json {
		a.document(copyDocument{FormatVersion: view.FormatVersion, Files: done.Files, Bytes: done.Bytes, Left: append([]string{}, done.Left...)})
		return
	}
	for _, name := range done.Left {
		view.Warning(a.errScreen(), name+" was not copied: it is no file, folder or link")
	}
}
