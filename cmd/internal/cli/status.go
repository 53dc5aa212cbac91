package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
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
	doc := view.StatusDocument{
		FormatVersion: view.FormatVersion, Project: s.project.owner.Name, ID: s.project.owner.Lineage(),
		Resources: a.statuses(ctx, s, known(s.project, s.snapshot)),
	}
	if s.holder != nil {
		doc.Lock = view.HolderText(*s.holder)
	}
	a.show(doc, func(screen view.Screen) { view.Status(screen, doc) })
	return ctx.Err()
}

// statuses returns the status of each address. It asks all running VMs at once whether SSH
// answers.
func (a *app) statuses(ctx context.Context, s observation, addrs []spec.Address) []view.ResourceStatus {
	all := make([]view.ResourceStatus, len(addrs))
	var wait sync.WaitGroup
	for i, addr := range addrs {
		wait.Go(func() { all[i] = a.statusOf(ctx, s.at(addr)) })
	}
	wait.Wait()
	return all
}

func (a *app) statusOf(ctx context.Context, v observedAddress) view.ResourceStatus {
	status := v.status()
	if v.address.Kind == spec.VM {
		status.Conditions = append(status.Conditions, a.sshReady(ctx, v, status))
	}
	return status
}
