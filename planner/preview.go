package planner

import (
	"context"
	"fmt"

	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
)

// preview asks the systems that alone can tell what the changes of d would do in them, and blocks a change in which a system
// would destroy more than the block allows. A change that its system refuses already when it is asked is blocked, too.
func preview(ctx context.Context, d Delta, w *World) error {
	for i := range d.Changes {
		c := &d.Changes[i]
		switch {
		case c.Action == providers.NoOp, c.Action == providers.Forget, c.Action == providers.Adopt, c.Blocked != nil, d.Aside[c.Address]:
			continue
		case c.To != nil, c.with != spec.Address{}: // it is made elsewhere, once its object here is gone
			continue
		}
		system := w.System(c.System)
		if system == nil {
			continue
		}
		previewer, ok := providers.Ability[providers.Previewer](system.Provider)
		if !ok {
			continue
		}
		var err error
		err = providers.Contain(func() error {
			c.Preview, err = previewer.Preview(ctx, c.Change)
			return err
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.Blocked = &Block{Cause: CauseRefused, Problem: providers.Unread(err)}
			continue
		}
		c.judge(d.options.Allow.Replace[c.Address])
	}
	return nil
}

// judge blocks a change that keeps its object, if the system would destroy something for it and no edit may go that far.
func (c *Change) judge(allowed bool) {
	losing := c.Preview.Losing()
	if len(losing) == 0 || allowed || c.Action == providers.ReplaceIt || c.Action == providers.Destroy {
		return
	}
	path, ceiling := "", ceilingOf(c.Kind, c.Policy, "")
	for _, e := range c.Edits {
		if path, ceiling = e.Path, ceilingOf(c.Kind, c.Policy, e.Path); ceiling == providers.Replace {
			return
		}
	}
	next := providers.Say("allow it once: --allow-replace=" + shellword.Quote(c.Address.String()))
	if path != "" {
		next = append(providers.Say(fmt.Sprintf("add to the block of %s: lifecycle { on_change = { %s = %q } }", c.Address, path, providers.Replace)), next...)
	}
	c.Blocked = &Block{
		Cause: CauseCeiling, Attr: path,
		Problem: providers.Refuse(fmt.Sprintf("%s would %s, and on_change allows at most %s", c.Provider, losing[0].Text, ceiling), next),
	}
}
