package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

func (a *app) workspaceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspace",
		Short: "Work in workspaces, and exchange their commits with this host",
		Long: "Work in workspaces, and exchange their commits with this host.\n\n" +
			"NAME is a workspace's address (workspace.auth), its last part (auth) if no other\n" +
			"workspace has it, or its branch. Apply and destroy make and remove workspaces.",
		Args: cobra.ArbitraryArgs,
		RunE: a.group,
	}
	cmd.AddCommand(a.workspaceCloseCommand(), a.workspaceConflictsCommand(), a.workspaceDiffCommand(), a.workspaceExecCommand(), a.workspaceFetchCommand(),
		a.workspaceLogCommand(), a.workspaceMergeCommand(), a.workspaceOpenCommand(), a.workspacePushCommand(), a.workspaceRestoreCommand(), a.workspaceSaveCommand(), a.workspaceSavesCommand(), a.workspaceShellCommand(), a.workspaceStatusCommand())
	return cmd
}

// workspaceOf finds the one workspace that a name or a branch means.
func (a *app) workspaceOf(p *project, name string) (spec.Address, error) {
	found, err := p.config.Lookup(name, spec.Workspace)
	for _, r := range workspacesAt(p.config, name) {
		if !slices.Contains(found, r.Address) {
			found = append(found, r.Address)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return spec.Address{}, severalError(name, found)
	}
	if others, none := p.config.Lookup(name); none == nil {
		return spec.Address{}, rejected("usage", others[0].String()+" is no workspace")
	}
	return spec.Address{}, rejected("unknown_resource", fmt.Sprintf("no workspace has the name or the branch %s: %s", quoted(name), err),
		"those that are there: "+a.commandLine("status", planFlags{}), "a workspace for a branch: "+a.commandLine("workspace open", planFlags{}, name))
}

// workspacesAt returns the workspaces that have a branch.
func workspacesAt(c *spec.Config, branch string) (all []spec.Resource) {
	for i := range c.Resources {
		if r := c.Resources[i]; r.Address.Kind == spec.Workspace && ctyread.Text(r.Want, "branch") == branch {
			all = append(all, r)
		}
	}
	return all
}

// enteredWorkspace is a workspace that a command uses.
type enteredWorkspace struct {
	observedAddress
	observation observation
	project     *project
	inside      spec.Address // of the VM around it; zero: it is on this host
}

// inWorkspace finds a workspace, and calls use while no other run can remove it or take down the VM that it is in. An error of use is
// returned as it is; one before it is a before.
func (a *app) inWorkspace(ctx context.Context, name, command, program string, use func(enteredWorkspace) error) (err error) {
	p, err := a.openRecorded(ctx)
	if err != nil {
		return before{err: err}
	}
	return a.inWorkspaceOf(ctx, p, visit{vm: name, command: command, program: program}, use)
}

// inWorkspaceOf is inWorkspace for a project that is open. v.vm is the name of the workspace.
func (a *app) inWorkspaceOf(ctx context.Context, p *project, v visit, use func(enteredWorkspace) error) (err error) {
	addr, err := a.workspaceOf(p, v.vm)
	if err != nil {
		return before{err: err}
	}
	r, _ := p.config.Resource(addr)
	held := []spec.Address{addr}
	if r.Inside.Kind == spec.VM {
		held = []spec.Address{r.Inside, addr}
	}
	for _, one := range held {
		words := visit{command: v.command, program: v.program}.words(addr)
		if one != addr {
			words = visit{command: v.command + " " + addr.String() + " in", program: v.program}.words(one)
		}
		leave, err := a.enter(ctx, p, one, words)
		if err != nil {
			return before{err: err}
		}
		defer func() { err = errors.Join(err, leave()) }()
	}
	s, err := a.observeAt(ctx, p, addr)
	if err != nil {
		return before{err: err}
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	w := enteredWorkspace{observedAddress: s.at(addr), observation: s, project: p}
	if r.Inside.Kind == spec.VM {
		w.inside = r.Inside
	}
	if err := a.present(w, r.Inside); err != nil {
		return before{err: err}
	}
	return use(w)
}

// present fails unless a workspace exists and could be read.
func (a *app) present(w enteredWorkspace, inside spec.Address) error {
	if inside.Kind == spec.VM {
		if _, err := a.runningIn(w.observation, inside.String()); err != nil {
			return err
		}
	}
	switch status := w.status(); {
	case w.unknown != nil:
		next := status.Next
		if len(next) == 0 && inside.Kind == spec.VM {
			next = []string{a.commandLine("vm logs", planFlags{}, inside.String()), "repeat this once the VM answers"}
		}
		e := newProblem(classRefused, "unknown", "read "+w.address.String()+": it could not be read, and nothing was done", next...)
		e.Seen = []string{status.Reason}
		return e
	case w.object == nil:
		return newProblem(classFailed, "missing", w.address.String()+" does not exist: "+status.Reason, a.commandLine("apply", planFlags{}))
	}
	return nil
}

// environment returns the env block of a workspace.
func (w enteredWorkspace) environment() cty.Value {
	return ctyread.Attr(spec.Revealed(w.values()), "env")
}

// passNames returns the names of variables that the env block of a workspace or a job passes on.
func passNames(block cty.Value) (names []string) {
	for _, v := range ctyread.List(ctyread.Attr(block, "pass")) {
		names = append(names, v.AsString())
	}
	return names
}

// passed returns the variables of this process that a workspace's block passes on.
func (a *app) passed(w enteredWorkspace) []string {
	return workspace.Passed(w.environment(), a.env.Environ)
}

func (a *app) workspaceExecCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec NAME -- COMMAND [ARG...]",
		Short: "Run a command in a workspace",
		Long: "Run a command in the folder of a workspace, with the environment of its block. The\n" +
			"command gets its arguments unchanged: no shell reads them. The exit code is the\n" +
			"command's, or 255 if it was not run. A VM that is off is not started.",
		Args: between(2, -1, "the name of a workspace and a command"),
		RunE: withCommand(a.workspaceExec),
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func (a *app) workspaceExec(ctx context.Context, name string, command []string) error {
	return a.inWorkspace(ctx, name, "vmctl workspace exec", command[0], func(w enteredWorkspace) error {
		return a.runIn(ctx, w, command)
	})
}

// runIn runs a command in a workspace that was entered. Its exit code becomes vmctl's.
func (a *app) runIn(ctx context.Context, w enteredWorkspace, command []string) error {
	host, ok := providers.Ability[providers.Host](w.system.Provider)
	if !ok {
		return before{err: fmt.Errorf("%s cannot be entered", w.address)}
	}
	g, err := host.Enter(ctx, *w.object, spec.Revealed(w.values()))
	if err != nil {
		return before{err: err}
	}
	code, err := a.execIn(ctx, withEnv{g, a.passed(w)}, command)
	return exited(code, err)
}

// exited returns the error of a command that ran inside: its exit status, or that its end was not seen.
func exited(code int, err error) error {
	if err != nil {
		e := newProblem(classFailed, "unknown_end", err.Error(), "see what it did before you run it again: it may still be running")
		e.err = err
		return before{err: e}
	}
	if code != 0 {
		return status{code: code}
	}
	return nil
}

// withEnv is a guest whose commands get further variables.
type withEnv struct {
	providers.Guest
	env []string
}

// Run implements providers.Guest.
func (g withEnv) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	c.Env = append(g.env[:len(g.env):len(g.env)], c.Env...)
	return g.Guest.Run(ctx, c)
}

func (a *app) workspaceFetchCommand() *cobra.Command {
	trusted := ""
	cmd := &cobra.Command{
		Use:   "fetch NAME",
		Short: "Bring the commits of a workspace to this host",
		Long: "Bring the commits of a workspace's branch to the branch of that name of this host's\n" +
			"repository. The branch only moves forward; where it is checked out, its files follow\n" +
			"if none of them is changed. While the workspace has changes that are not committed, nothing is\n" +
			"fetched, unless its block says sync { on_dirty = \"warn\" }.\n\n" +
			"Where the branch is checked out, commits that change files on which vmctl acts\n" +
			"(*.vmctl.hcl, and what the spec reads) are fetched only if --trust-spec names the last of\n" +
			"them, after you have read them.",
		Args: one("the name of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTrusted(trusted); err != nil {
				return err
			}
			return a.exchange(cmd.Context(), args[0], "fetch", func(ctx context.Context, x workspace.Exchanger, w enteredWorkspace) (workspace.Moved, error) {
				if err := a.checkClean(w); err != nil {
					return workspace.Moved{}, err
				}
				return x.Fetch(ctx, w.object.ID, trusted)
			})
		},
	}
	cmd.Flags().StringVar(&trusted, "trust-spec", "", "fetch changes to files of the spec if `SHA` is the last commit")
	return cmd
}

func (a *app) workspacePushCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "push NAME",
		Short: "Bring the commits of this host to a workspace",
		Long: "Bring the commits of this host's branch to a workspace. The workspace's branch only\n" +
			"moves forward, and only if none of its files is changed.",
		Args: one("the name of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.exchange(cmd.Context(), args[0], "push", func(ctx context.Context, x workspace.Exchanger, w enteredWorkspace) (workspace.Moved, error) {
				return x.Push(ctx, w.object.ID)
			})
		},
	}
}

// checkClean refuses to fetch from a workspace with changes that are not committed, or warns of them.
func (a *app) checkClean(w enteredWorkspace) error {
	if why := w.object.Unreadable["dirty"]; why != "" {
		e := newProblem(classRefused, "unknown", "fetch from "+w.address.String()+": it could not be read whether it has changes that are not committed",
			"see what to do about it: "+a.commandLine("plan", planFlags{}))
		e.Seen = []string{why}
		return e
	}
	var seen []string
	for _, d := range w.object.Dirty {
		if workspace.IsChange(d.Sort) {
			seen = append(seen, d.String())
		}
	}
	if len(seen) == 0 {
		return nil
	}
	policy := w.policy()
	if ctyread.Text(ctyread.Attr(policy, "sync"), "on_dirty") == "warn" {
		view.Warning(a.errScreen(), w.address.String()+" has changes that are not committed, and that were not fetched: "+strings.Join(seen, "; "))
		return nil
	}
	inside := func(args ...string) string {
		return a.commandLine("workspace exec", planFlags{}, append([]string{w.address.String(), "--", "git"}, args...)...)
	}
	var next []string
	if slices.ContainsFunc(w.object.Dirty, func(d providers.Dirt) bool { return d.Sort == workspace.Untracked }) {
		next = append(next, "add the new files there: "+inside("add", "--all"))
	}
	next = append(next, "commit them there: "+inside("commit", "--all"),
		"or have them warned of only: sync { on_dirty = \"warn\" } in the block of "+w.address.String())
	e := newProblem(classRefused, "dirty", "fetch from "+w.address.String()+": it has changes that are not committed", next...)
	e.Seen = seen
	return e
}

type movedDocument struct {
	FormatVersion string `json:"format_version"`
	Address       string `json:"address"`
	Branch        string `json:"branch"`
	From          string `json:"from"`
	To            string `json:"to"`
}

// exchange moves the branch of a workspace, here or there.
func (a *app) exchange(ctx context.Context, name, verb string, do func(context.Context, workspace.Exchanger, enteredWorkspace) (workspace.Moved, error)) error {
	err := a.inWorkspace(ctx, name, "vmctl workspace "+verb, "", func(w enteredWorkspace) error {
		m, err := a.exchanged(ctx, w, verb, do)
		if err != nil {
			return err
		}
		a.show(movedDocument{FormatVersion: view.FormatVersion, Address: w.address.String(), Branch: m.Branch, From: m.From, To: m.To}, func(s view.Screen) {
			view.Moved(s, w.address.String(), m.Branch, m.From, m.To)
		})
		return nil
	})
	var early before
	if errors.As(err, &early) { // no program of the user's ran: the exit codes are vmctl's own
		return early.err
	}
	return err
}

// exchanged moves the branch of a workspace that was entered. It says of a refusal what to type next.
func (a *app) exchanged(ctx context.Context, w enteredWorkspace, verb string, do func(context.Context, workspace.Exchanger, enteredWorkspace) (workspace.Moved, error)) (workspace.Moved, error) {
	x, ok := providers.Ability[workspace.Exchanger](w.system.Provider)
	if !ok {
		return workspace.Moved{}, fmt.Errorf("%s %s: its provider exchanges no commits", verb, w.address)
	}
	m, err := do(ctx, x, w)
	var refused *workspace.RefusedError
	var changed *workspace.SpecError
	var known *problem
	switch {
	case errors.As(err, &changed):
		e := newProblem(classRefused, "untrusted_spec", verb+" "+w.address.String()+": "+changed.Error(),
			"read the changes: "+a.commandLine("workspace diff", planFlags{}, w.address.String()),
			"then fetch them: "+a.commandLine("workspace fetch", planFlags{}, w.address.String(), "--trust-spec="+changed.Head))
		e.Seen = changed.Files
		return m, e
	case errors.As(err, &refused):
		e := newProblem(classRefused, "not_moved", verb+" "+w.address.String()+": "+refused.Why, refused.Next...)
		e.Seen = refused.Seen
		return m, e
	case err != nil && !errors.As(err, &known):
		return m, fmt.Errorf("%s %s: %w", verb, w.address, err)
	}
	return m, err
}

func (a *app) workspaceStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status NAME",
		Short: "Show the work in a workspace that exists nowhere else",
		Args:  one("the name of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.inWorkspace(cmd.Context(), args[0], "vmctl workspace status", "", func(w enteredWorkspace) error {
				d := view.WorkspaceDocument{
					FormatVersion: view.FormatVersion, Address: w.address.String(), ID: string(w.object.ID),
					Branch: ctyread.Text(w.object.Attrs, "branch"), Path: ctyread.Text(w.object.Attrs, "path"),
					Base: ctyread.Text(w.object.Attrs, "base"), Head: ctyread.Text(w.object.Attrs, "head"),
					Unknown: w.object.Unreadable["dirty"], Dirty: []view.DirtEntry{},
				}
				for _, dirt := range w.object.Dirty {
					d.Dirty = append(d.Dirty, view.DirtEntry{Sort: dirt.Sort, Items: dirt.Items})
				}
				a.show(d, func(s view.Screen) { view.Workspace(s, d) })
				return nil
			})
			var early before
			if errors.As(err, &early) {
				return early.err
			}
			return err
		},
	}
}
