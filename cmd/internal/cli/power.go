package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// power describes a command that changes the run state of VMs or containers, or the keys of VMs.
type power struct {
	kind          spec.Kind
	state         string // of a container, after the command; "": the command is about VMs
	command, verb string
	running       bool // after the command
	restart       bool
	rekey         bool // the run state stays as it is
	unpause       bool // only what is paused runs again
}

func (a *app) startCommand() *cobra.Command {
	return a.powerCommand(power{kind: spec.VM, command: "vm start", verb: "Start", running: true}, &cobra.Command{
		Use: "start NAME...", Short: "Start VMs, and wait until they are ready",
	})
}

func (a *app) stopCommand() *cobra.Command {
	return a.powerCommand(power{kind: spec.VM, command: "vm stop", verb: "Stop"}, &cobra.Command{
		Use: "stop NAME...", Short: "Stop VMs: by request, then by force if their stop block allows it",
	})
}

func (a *app) restartCommand() *cobra.Command {
	return a.powerCommand(power{kind: spec.VM, command: "vm restart", verb: "Restart", running: true, restart: true}, &cobra.Command{
		Use: "restart NAME...", Short: "Stop VMs and start them again",
	})
}

func (a *app) rekeyCommand() *cobra.Command {
	return a.powerCommand(power{kind: spec.VM, command: "vm rekey", verb: "Rekey", running: true, rekey: true}, &cobra.Command{
		Use: "rekey NAME...", Short: "Give guests new SSH keys: VMs that run are restarted for it",
	})
}

func (a *app) powerCommand(w power, cmd *cobra.Command) *cobra.Command {
	var plan planFlags
	cmd.Long = cmd.Short + ".\n\nNAME is a VM's address or label: vm.dev, dev, 'vm.web[\"a\"]'. A label of a\n" +
		"for_each names all of its VMs. If the plan changes other VMs,\n" +
		"too, the command asks."
	a.powerFlags(w, cmd, &plan)
	cmd.Flags().StringArrayVar(&plan.allowReplace, "allow-replace", nil, "allow the replacement of `ADDR`")
	plan.registerInterrupt(cmd.Flags())
	return cmd
}

// powerFlags sets the arguments and flags that the power commands of VMs and containers share.
func (a *app) powerFlags(w power, cmd *cobra.Command, plan *planFlags) {
	var apply applyFlags
	cmd.Annotations = streams()
	cmd.Args = between(1, -1, "the name of a "+kindWord(w.kind))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.power(cmd.Context(), w, powerRequest{names: args, plan: *plan, apply: apply})
	}
	apply.register(cmd.Flags())
	cmd.Flags().BoolVar(&plan.verbose, "verbose", false, "show every detail")
	plan.registerWait(cmd.Flags())
}

// powerRequest holds the arguments and flags of a power command.
type powerRequest struct {
	names []string
	plan  planFlags
	apply applyFlags
}

func (a *app) power(ctx context.Context, w power, r powerRequest) error {
	if err := r.apply.check(); err != nil {
		return err
	}
	p, err := a.openFor(ctx, w)
	if err != nil {
		return err
	}
	vms, err := ofKind(p, w.kind, r.names)
	if err != nil {
		return err
	}
	return a.carryOut(ctx, p, mission{
		command: w.command, names: r.names, spends: !w.running, verb: w.verb, title: w.verb + " " + strings.Join(view.Addresses(vms), ", "),
		idle: func(plan *planner.Plan) string { return w.idle(vms, plan) }, plan: r.plan, apply: r.apply,
		options: func(s *state.Snapshot) (planner.Options, error) {
			o, err := a.options(p, s, r.plan)
			o.Scope.Targets, o.Running, o.Restart, o.Rekey = vms, map[spec.Address]bool{}, map[spec.Address]bool{}, map[spec.Address]bool{}
			o.States = map[spec.Address]string{}
			o.Scope.Alone = !w.running || w.restart || w.rekey // a start brings what it needs
			for _, addr := range vms {
				switch {
				case w.rekey:
					o.Rekey[addr] = true
				case w.state != "":
					o.States[addr], o.Restart[addr] = w.state, w.restart
				default:
					o.Running[addr], o.Restart[addr] = w.running, w.restart
				}
			}
			return o, err
		},
		named: func(c planner.Change) bool {
			lets := c.Action == providers.Release && slices.ContainsFunc(c.Around, func(a spec.Address) bool { return slices.Contains(vms, a) })
			return lets || slices.Contains(vms, c.Address) && !isHalfReplaced(c) && !mayHaveRestarted(c) && (changesRunState(c) || w.rekey && changesKeys(c) || changesOnlyState(c))
		},
		check: func(plan *planner.Plan, _ *state.Snapshot) error {
			a.warnRestarts(plan)
			return a.checkPause(w, vms, plan)
		},
		acts: w.acting(vms),
		after: func() {
			if !w.rekey {
				a.nextApply(p, w, vms)
			}
		},
	})
}

// acting returns the recording of a command on containers; nil for one on VMs.
func (w power) acting(all []spec.Address) *acting {
	if w.kind != spec.Container {
		return nil
	}
	return &acting{command: w.command, all: all}
}

// openFor opens the project. A command that stops VMs also gets the resources that only
// records name, and works with a spec that has mistakes.
func (a *app) openFor(ctx context.Context, w power) (*project, error) {
	if w.running {
		return a.open()
	}
	p, err := a.openExisting()
	if err != nil {
		return nil, err
	}
	snapshot, err := p.store.Read(ctx)
	if err != nil {
		return nil, err
	}
	a.addAllRecorded(p, snapshot.With(planner.Moves(p.config, snapshot)...))
	return p, nil
}

// idle says why there is nothing to do with any of the VMs.
func (w power) idle(vms []spec.Address, plan *planner.Plan) string {
	there := "is stopped already"
	switch {
	case w.state == containerPaused:
		there = "is paused already"
	case w.running:
		there = "is running already"
	}
	var reasons []string
	about := map[string][]spec.Address{}
	for _, addr := range vms {
		reason := there
		i := slices.IndexFunc(plan.Changes, func(c planner.Change) bool { return c.Address == addr })
		if i >= 0 && plan.Changes[i].Object == nil && plan.Changes[i].Reason != "" {
			reason = plan.Changes[i].Reason
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
		about[reason] = append(about[reason], addr)
	}
	var texts []string
	for _, reason := range reasons {
		names := strings.Join(view.Addresses(about[reason]), ", ")
		if reason != there {
			names += ":"
		}
		texts = append(texts, names+" "+reason+".")
	}
	return strings.Join(texts, " ")
}

// nextApply warns about VMs that the next apply would start or stop again.
func (a *app) nextApply(p *project, w power, vms []spec.Address) {
	for _, addr := range vms {
		r, ok := p.config.Resource(addr)
		if ok && !p.config.Recorded(addr) && w.state != "" {
			a.nextState(w, r)
			continue
		}
		if !ok || p.config.Recorded(addr) || wantsRunning(r) == w.running {
			continue
		}
		text := "the files say running = true for " + addr.String() + ": the next apply starts it again"
		if w.running {
			text = "the files say running = false for " + addr.String() + ": the next apply stops it again"
		}
		view.Warning(a.errScreen(), text)
	}
}

func wantsRunning(r spec.Resource) bool { return ctyread.True(r.Want, "running") }
