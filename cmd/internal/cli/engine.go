package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

func (a *app) engineCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Watch what changes in a container engine, and run docker on it",
		Long: "Watch what changes in a container engine, and run docker and other clients on it.\n\n" +
			"Apply makes what the files declare in an engine; container acts on containers.",
		Args: cobra.ArbitraryArgs,
		RunE: a.group,
	}
	cmd.AddCommand(a.engineWatchCommand(), a.engineExecCommand())
	return cmd
}

func (a *app) engineWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch NAME",
		Short: "Show each change in an engine as it happens, as JSON lines",
		Long: "Show the containers, images, volumes and networks of an engine, and then each change of them as\n" +
			"it happens, as one JSON document a line, until Ctrl-C (exit code 0). NAME is an engine's\n" +
			"address (engine.here) or its label.\n\n" +
			"The field change is present, added, changed, removed or unknown (it cannot be read). listed\n" +
			"says that all that is there has been shown; lost says that the connection is lost: it is made\n" +
			"again, and what differs then is shown before the next listed. The field drift lists where a\n" +
			"declared object is not as the files say. It changes nothing.",
		Args: one("the name of an engine"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.engineWatch(cmd.Context(), args[0]) },
	}
}

// watchDocument is a line of engine watch.
type watchDocument struct {
	FormatVersion string               `json:"format_version"`
	Type          string               `json:"type"`
	Engine        string               `json:"engine"`
	Change        providers.NoticeKind `json:"change"`
	Kind          spec.Kind            `json:"kind,omitempty"`
	ID            string               `json:"id,omitempty"`
	Name          string               `json:"name,omitempty"`
	State         string               `json:"state,omitempty"`
	Address       string               `json:"address,omitempty"`
	Drift         []string             `json:"drift,omitempty"`
	Reason        string               `json:"reason,omitempty"`
}

func (a *app) engineWatch(ctx context.Context, name string) (err error) {
	s, err := a.observe(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	addr, err := oneOfKind(s.project, spec.Engine, name)
	if err != nil {
		return err
	}
	v, err := a.containerAt(s, addr, "watch "+addr.String())
	if err != nil {
		return err
	}
	if err := v.needsAPI("watch " + addr.String()); err != nil {
		return err
	}
	for _, system := range s.world.Systems() {
		watcher, able := providers.Ability[providers.Watcher](system.Provider)
		if system.Inside != v.address || !able {
			continue
		}
		err := watcher.Watch(ctx, func(notice providers.Notice) error {
			if a.line(a.watched(s, system, notice)); a.stdout.ended() {
				return errNobodyReads
			}
			return nil
		})
		if ctx.Err() != nil || errors.Is(err, errNobodyReads) { // Ctrl-C ends a watch as it should end
			return nil
		}
		return err
	}
	return newProblem(classFailed, "missing", "watch "+addr.String()+": nothing is declared in it, so it is not read", "declare a container, an image or a volume in it")
}

var errNobodyReads = errors.New("nobody reads standard output any more")

// watched returns the line of what a watch has noticed.
func (a *app) watched(s observation, system *planner.System, notice providers.Notice) watchDocument {
	o := notice.Object
	d := watchDocument{
		FormatVersion: view.FormatVersion, Type: "engine", Engine: system.Inside.String(), Change: notice.Change,
		Kind: o.Kind, ID: string(o.ID), Name: o.Name, State: o.State, Reason: notice.Reason,
	}
	if id := ctyread.Text(o.Attrs, "container_id"); id != "" {
		d.ID = id
	}
	r, declared := declaredAs(s, system, &o)
	if !declared {
		return d
	}
	d.Address = r.Address.String()
	switch notice.Change {
	case providers.NoticedRemoved:
		d.Drift = []string{"missing"}
	case providers.NoticedPresent, providers.NoticedAdded, providers.NoticedChanged:
		d.Drift = differences(r, &o)
	case providers.NoticedUnknown, providers.NoticedListed, providers.NoticedLost:
	}
	return d
}

// declaredAs returns the block of an object.
func declaredAs(s observation, system *planner.System, o *providers.Object) (spec.Resource, bool) {
	if o.Kind == "" {
		return spec.Resource{}, false
	}
	for _, r := range s.project.config.Resources {
		if r.Address.Kind != o.Kind {
			continue
		}
		at := s.at(r.Address)
		isSame := at.object != nil && at.system == system && at.object.ID == o.ID
		isOurs := o.Owner != nil && o.Owner.Of == o.ID && o.Owner.Address == r.Address && planner.MarkingOf(o, s.project.owner) == planner.Ours
		if isSame || isOurs {
			return r, true
		}
	}
	return spec.Resource{}, false
}

// watchedAttributes lists the attributes that an engine shows as the files write them.
func watchedAttributes() []string { return []string{"state", "restart", "memory", "cpus", "driver"} }

// differences lists where an object is not as its block says.
func differences(r spec.Resource, o *providers.Object) []string {
	ignored := ctyread.List(ctyread.Attr(ctyread.Attr(r.Policy, "lifecycle"), "ignore_changes"))
	var all []string
	for _, name := range watchedAttributes() {
		isIgnored := slices.ContainsFunc(ignored, func(path cty.Value) bool { return path.AsString() == name || path.AsString() == "all" })
		want, now := ctyread.KnownAttr(r.Want, name), ctyread.KnownAttr(o.Attrs, name)
		if isIgnored || !ctyread.Known(want) || !ctyread.Has(o.Attrs, name) || now == cty.NilVal || !want.Type().Equals(now.Type()) || want.Equals(now).True() {
			continue
		}
		all = append(all, name)
	}
	return all
}
