package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// The values of the attribute state of a container.
const (
	containerRunning = "running"
	containerCreated = "created" // it does not run
	containerPaused  = "paused"
)

func (a *app) containerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "container",
		Short: "Start, stop and pause containers, run commands in them, and read their logs",
		Long: "Start, stop and pause containers, run commands in them, and read their logs.\n\n" +
			"NAME is a container's address (container.web, 'container.web[\"a\"]'), or its last part\n" +
			"(web) if no other container has it. Its engine is on this host or in a VM. Apply and\n" +
			"destroy make and remove containers.",
		Args: cobra.ArbitraryArgs,
		RunE: a.group,
	}
	for _, c := range []struct {
		power
		use, short string
	}{
		{power{command: "container start", verb: "Start", running: true, state: containerRunning}, "start", "Start containers, and wait until they are healthy"},
		{power{command: "container stop", verb: "Stop", state: containerCreated}, "stop", "Stop containers: by request, then by force if their stop block allows it"},
		{power{command: "container pause", verb: "Pause", state: containerPaused}, "pause", "Pause containers that run"},
		{power{command: "container unpause", verb: "Unpause", running: true, state: containerRunning, unpause: true}, "unpause", "Let containers that are paused go on"},
		{power{command: restartContainer, verb: "Restart", running: true, state: containerRunning, restart: true}, "restart", "Stop containers and start them again"},
	} {
		c.kind = spec.Container
		cmd.AddCommand(a.containerPowerCommand(c.power, &cobra.Command{Use: c.use + " NAME...", Short: c.short}))
	}
	cmd.AddCommand(a.containerExecCommand(), a.containerLogsCommand())
	return cmd
}

func (a *app) containerPowerCommand(w power, cmd *cobra.Command) *cobra.Command {
	var plan planFlags
	cmd.Long = cmd.Short + ".\n\nNAME is a container's address or label: container.web, web, 'container.web[\"a\"]'. A\n" +
		"label of a for_each names all of its containers. If the plan changes other resources,\n" +
		"too, the command asks. Edits of the files wait for apply."
	a.powerFlags(w, cmd, &plan)
	return cmd
}

// changesOnlyState reports whether a change starts, stops or pauses a container, and does nothing else.
func changesOnlyState(c planner.Change) bool {
	if c.Kind != spec.Container || c.Action != providers.Update && c.Action != providers.RestartIt || c.Mark != nil {
		return false
	}
	return !slices.ContainsFunc(c.Edits, func(e providers.Edit) bool { return e.Path != "state" })
}

// isHalfReplaced reports whether a replacement of a container was cut short: then a change of it removes the old one.
func isHalfReplaced(c planner.Change) bool {
	return c.Kind == spec.Container && c.Object != nil &&
		slices.ContainsFunc(c.Object.Findings, func(f providers.Finding) bool { return f.Kind == providers.FindLeftover })
}

// checkPause fails if a container that is to be paused does not run, or if one that is to go on is not paused.
func (a *app) checkPause(w power, all []spec.Address, plan *planner.Plan) error {
	for i := range plan.Changes {
		c := &plan.Changes[i]
		if w.state != containerPaused && !w.unpause || !slices.Contains(all, c.Address) || c.Blocked != nil {
			continue
		}
		if c.Object == nil && c.Action == providers.NoOp && c.Reason == "" {
			return newProblem(classFailed, "not_running", w.command+": "+c.Address.String()+" does not run: what is around "+c.Inside.String()+" is off",
				a.commandLine("container start", planFlags{}, c.Address.String()))
		}
		if c.Object == nil {
			return newProblem(classFailed, "missing", w.command+": "+c.Address.String()+" does not exist", a.commandLine("apply", planFlags{}))
		}
		if ctyread.Text(c.Object.Attrs, "state") == containerCreated {
			return newProblem(classFailed, "not_running", w.command+": "+c.Address.String()+" is not running: it is "+c.Object.State,
				a.commandLine("container start", planFlags{}, c.Address.String()))
		}
	}
	return nil
}

// nextState warns about a container to which the next apply gives another state.
func (a *app) nextState(w power, r spec.Resource) {
	wanted := ctyread.Text(r.Want, "state")
	ignored := ctyread.List(ctyread.Attr(ctyread.Attr(r.Policy, "lifecycle"), "ignore_changes"))
	for _, path := range ignored {
		if text := path.AsString(); text == "state" || text == "all" {
			return
		}
	}
	if wanted == w.state {
		return
	}
	does := map[string]string{containerRunning: "starts it again", containerCreated: "stops it again", containerPaused: "pauses it again"}
	view.Warning(a.errScreen(), "the files say state = \""+wanted+"\" for "+r.Address.String()+": the next apply "+does[wanted])
}

// containers lists the containers of the files.
func (a *app) containers(ctx context.Context) []string {
	p, s := a.quietly(ctx)
	if s == nil {
		return nil
	}
	return view.Addresses(slices.DeleteFunc(known(p, s), func(addr spec.Address) bool { return addr.Kind != spec.Container }))
}
