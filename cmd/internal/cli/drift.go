package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

func (a *app) driftCommand() *cobra.Command {
	var r driftRequest
	cmd := &cobra.Command{
		Use:   "drift",
		Short: "Show what something other than vmctl changed",
		Long: "Compare every object with its record, and show what differs: managed attributes,\n" +
			"run states, objects that are missing or broken. Edits of the files that were not\n" +
			"applied, computed values and lifecycle.ignore_changes are no drift. Drift changes\n" +
			"nothing and takes no lock.\n\n" +
			"--ignore-file names a file of accepted drift:\n\n" +
			"  ignore {\n" +
			"    address = vm.dev            # or vm.web: all of its instances\n" +
			"    path    = \"memory\"          # without it: the whole object\n" +
			"    reason  = \"load test\"\n" +
			"    owner   = \"ops\"\n" +
			"    expiry  = \"2026-12-31\"      # counts as drift from then on\n" +
			"  }\n\n" +
			"--adopt writes the present values of a resource into its block and its record, so that\n" +
			"the next plan has nothing to do for it. --revert keeps a plan in a file that makes it\n" +
			"again what was applied, and nothing else; `vmctl apply FILE` carries it out.\n\n" +
			"The exit code is 0 without drift, 2 with drift, and 6 if there is none in what\n" +
			"could be read, and something could not be read.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.drift(cmd.Context(), r) },
	}
	cmd.Flags().StringVar(&r.format, "format", "text", "text, junit, prometheus or markdown, as `FORMAT`")
	cmd.Flags().StringVar(&r.ignore, "ignore-file", "", "leave out the drift that `FILE` accepts")
	cmd.Flags().StringArrayVar(&r.adopt, "adopt", nil, "write what `ADDR` is now into its block")
	cmd.Flags().StringArrayVar(&r.revert, "revert", nil, "keep a plan that makes `ADDR` again what was applied")
	cmd.Flags().StringVar(&r.out, "out", "", "keep the plan of --revert in `FILE`, for vmctl apply")
	return cmd
}

// driftRequest holds the flags of drift.
type driftRequest struct {
	format string
	ignore string // a file; "": none
	adopt  []string
	revert []string
	out    string // a file; "": none
}

func (r driftRequest) check(json bool) error {
	if !slices.Contains(view.DriftFormats(), r.format) {
		return rejected("usage", "read --format: there is no format "+quoted(r.format), "the formats are text, junit, prometheus, markdown; and --json")
	}
	if json && r.format != "text" {
		return rejected("usage", "drift takes --json or --format="+r.format+", and not both")
	}
	return nil
}

func (a *app) drift(ctx context.Context, r driftRequest) (err error) {
	if err := r.check(a.global.json); err != nil {
		return err
	}
	switch err := r.checkWaysOut(); {
	case err != nil:
		return err
	case len(r.adopt) > 0:
		return a.adoptDrift(ctx, r)
	case len(r.revert) > 0:
		return a.revertDrift(ctx, r)
	}
	ignored, err := a.ignoredDrift(r.ignore)
	if err != nil {
		return err
	}
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	snapshot, holder, err := a.readBeside(ctx, p)
	if err != nil {
		return err
	}
	a.onlyRecorded(p, snapshot)
	found, err := a.findDrift(ctx, p, snapshot, holder)
	if err != nil {
		return err
	}
	doc := view.DriftJSON(found, view.DriftOptions{Project: p.owner, Ignored: ignored, Now: a.env.Now()})
	if holder != nil {
		doc.Lock = view.HolderText(*holder)
	}
	if a.global.json {
		a.document(doc)
	} else {
		view.Drift(a.screen(), doc, r.format)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(doc.Drift) > 0:
		return status{code: 2}
	case len(doc.Unread) > 0:
		return status{code: classRefused.code()}
	default:
		return nil
	}
}

// onlyRecorded makes p the project of its records: resources without a record are left out, and
// records without a resource get one.
func (a *app) onlyRecorded(p *project, s *state.Snapshot) {
	a.addAllRecorded(p, s)
	p.config = p.config.Only(func(addr spec.Address) bool {
		_, is := s.Records[addr]
		return is
	})
}

// findDrift observes what is recorded, and compares.
func (a *app) findDrift(ctx context.Context, p *project, s *state.Snapshot, holder *state.Holder) (found planner.Drift, err error) {
	o := planner.Options{Types: a.types, Project: p.owner, DigestKey: p.key, Held: holder != nil}
	world, err := planner.Observe(ctx, a.opener(p), p.config, s, o)
	if err != nil {
		return found, errors.Join(err, world.Close())
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	a.logObserved(ctx, world)
	delta, err := planner.Diff(p.config, s, world, o)
	if err != nil {
		return found, err
	}
	return planner.DriftOf(p.config, delta, s), nil
}

// ignoredDrift reads the file of ignored drift.
func (a *app) ignoredDrift(path string) ([]spec.IgnoredDrift, error) {
	if path == "" {
		return nil, nil
	}
	src, err := os.ReadFile(a.absolute(path))
	if err != nil {
		return nil, rejected("ignore_file", fmt.Sprintf("read --ignore-file: %v", err))
	}
	all, diags := spec.ParseIgnoredDrift(src, path)
	if diags.HasErrors() {
		return nil, rejected("ignore_file", "read --ignore-file: "+diags.Error(),
			"an entry is: ignore { address = vm.dev, path = \"memory\", reason = \"…\", owner = \"…\", expiry = \""+a.env.Now().UTC().Format(time.DateOnly)+"\" }, one attribute a line")
	}
	return all, nil
}
