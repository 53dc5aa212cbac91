package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// fetchLimit is the time for all texts together that blocks name elsewhere.
const fetchLimit = time.Minute

// expander is spec.Inputs.Expand.
type expander func(providerType string, kind spec.Kind, want cty.Value, dir string) (cty.Value, *spec.UnreadError)

// skip is an expander that reads nothing.
func (a *app) skip(providerType string, kind spec.Kind, want cty.Value, _ string) (cty.Value, *spec.UnreadError) {
	t := a.types.Of(providerType, kind, spec.Address{})
	if t.Elsewhere == nil {
		return want, nil
	}
	path := t.Elsewhere(kind, want)
	if path == "" {
		return want, nil
	}
	return want, &spec.UnreadError{Skipped: true, Flaw: spec.Flaw{
		Path: path, Summary: "Text not read",
		Detail: fmt.Sprintf("its `%s` stands elsewhere, and plan, apply and validate alone read it", path),
	}}
}

// fetchElsewhere lets the command read the texts that blocks name elsewhere, until ctx ends or fetchLimit is over. It is
// for plan, apply and validate: every other command works with the texts that were applied.
func (a *app) fetchElsewhere(ctx context.Context) {
	left := fetchLimit
	a.expand = func(providerType string, kind spec.Kind, want cty.Value, dir string) (cty.Value, *spec.UnreadError) {
		t := a.types.Of(providerType, kind, spec.Address{})
		if t.Expand == nil || t.Elsewhere(kind, want) == "" {
			return want, nil
		}
		began := a.env.Now()
		ctx, cancel := context.WithTimeoutCause(ctx, left, errFetchLimit)
		defer cancel()
		expanded, flaw := t.Expand(ctx, kind, want, dir)
		left = max(0, left-a.env.Now().Sub(began))
		if flaw == nil {
			return expanded, nil
		}
		return want, &spec.UnreadError{Flaw: *flaw}
	}
}

// openFetching is open for a command that reads the texts that blocks name elsewhere.
func (a *app) openFetching(ctx context.Context, command string) (*project, error) {
	a.fetchElsewhere(ctx)
	config, diags := a.readSpec(nil)
	if err := ctx.Err(); err != nil {
		return nil, interruptedReading(command, err)
	}
	return a.opened(config, diags)
}

func interruptedReading(command string, err error) error {
	return fmt.Errorf("%s: interrupted while the files were read: nothing was changed: %w", command, err)
}

var errFetchLimit = errors.New("the time for all texts of the spec that stand elsewhere, " + fetchLimit.String() + ", is over")

// unreadTexts lists the texts that could not be read, each once.
func unreadTexts(config *spec.Config) hcl.Diagnostics {
	type place struct {
		at     hcl.Range
		detail string
	}
	var all hcl.Diagnostics
	said := map[place]bool{}
	for _, r := range config.Resources {
		if r.Unread == nil || said[place{r.Unread.Range, r.Unread.Detail}] {
			continue
		}
		said[place{r.Unread.Range, r.Unread.Detail}] = true
		all = append(all, r.Unread.Diagnostic())
	}
	return all
}
