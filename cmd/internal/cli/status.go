package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/condition"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show which VMs run and at which address they are reached",
		Long: "Look at every resource of the files and the state, and show whether it runs, at\n" +
			"which address SSH is reached, and whether it answers. The command changes nothing\n" +
			"and takes no lock.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
}

func (a *app) status(ctx context.Context) (err error) {
	s, err := a.observe(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	all, err := a.statuses(ctx, s, known(s.project, s.snapshot))
	if err != nil {
		return err
	}
	doc := view.StatusDocument{
		FormatVersion: view.FormatVersion, Project: s.project.owner.Name, ID: s.project.owner.Lineage(),
		Settled: settledRun(all), Resources: all,
	}
	if a.global.json {
		s.describe(ctx, &doc)
	}
	if s.holder != nil {
		doc.Lock = view.HolderText(*s.holder)
	}
	a.show(doc, func(screen view.Screen) { view.Status(screen, doc) })
	return ctx.Err()
}

// statuses returns the status of each address. It asks all running VMs at once whether SSH
// answers.
func (a *app) statuses(ctx context.Context, s observation, addrs []spec.Address) ([]view.ResourceStatus, error) {
	delta, err := planner.Diff(s.project.config, s.snapshot, s.world, s.options)
	if err != nil {
		return nil, err
	}
	changes := map[spec.Address]*planner.Change{}
	for i := range delta.Changes {
		changes[delta.Changes[i].Address] = &delta.Changes[i]
	}
	all := make([]view.ResourceStatus, len(addrs))
	var wait sync.WaitGroup
	for i, addr := range addrs {
		wait.Go(func() { all[i] = a.statusOf(ctx, s.at(addr), changes[addr]) })
	}
	wait.Wait()
	return all, nil
}

// statusOf returns the status of an address. c is the change that a plan would make of it now.
func (a *app) statusOf(ctx context.Context, v observedAddress, c *planner.Change) view.ResourceStatus {
	status := v.status()
	target := v.generation()
	awaited := []condition.Condition{applied(v, c)}
	if c != nil && (v.record != nil || c.Want != nil) {
		var recorded condition.Set
		if v.record != nil {
			recorded = v.record.Conditions
		}
		for _, now := range recorded.Complete(c.Conditions, target) {
			waived := now.Status == condition.NotApplicable && now.Reason == condition.NotAwaited
			seen := now
			if now.Type == condition.SSHReady && now.Reason != condition.NoProducer {
				seen = a.sshReady(ctx, v, status.State, now)
			}
			status.Conditions = append(status.Conditions, view.ConditionJSON(seen))
			if !waived {
				now = seen
			}
			awaited = append(awaited, now)
		}
	}
	status.Conditions = append(status.Conditions, view.ConditionJSON(awaited[0]))
	status.Settled = view.ConditionJSON(condition.Settle(awaited, target))
	return status
}

// specApplied is the condition that a plan would do nothing about a resource.
const specApplied = "spec.applied"

// applied returns whether a plan would do nothing about an address, or what it would do.
func applied(v observedAddress, c *planner.Change) condition.Condition {
	now := condition.Condition{Report: condition.Report{Type: specApplied, Status: condition.False}, Generation: v.generation(), Producer: "plan"}
	switch {
	case v.inapplicable != "":
		now.Status, now.Reason, now.Message = condition.NotApplicable, "NotApplicable", v.inapplicable
	case v.unknown != nil:
		now.Status, now.Reason, now.Message = condition.Unknown, "Unread", v.unknown.Error()
	case v.begun != "":
		now.Reason, now.Message = "InProgress", v.begun
	case c == nil || c.Action == providers.NoOp && c.Blocked == nil:
		now.Status, now.Reason = condition.True, "Applied"
	case c.Blocked != nil:
		now.Reason, now.Message = "Blocked", c.Blocked.Error()
	default:
		now.Reason, now.Message = "Planned", string(c.Action)+": "+c.Reason
	}
	return now
}

// settledRun returns the one condition of all resources.
func settledRun(all []view.ResourceStatus) view.ConditionDocument {
	var named []condition.Named
	for _, r := range all {
		named = append(named, condition.Named{Name: r.Address.String(), Condition: r.Settled.Condition()})
	}
	return view.ConditionJSON(condition.SettleAll(named))
}
