package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
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

// openRequest holds the arguments and flags of workspace open.
type openRequest struct {
	name       string // a branch, or the address of a workspace
	in         string // a VM; "": not said
	onHost     bool
	repo, path string   // of a new block; "": chosen
	command    []string // none: a shell
	broughtUp  bool     // a mount that still does not answer keeps nobody out
	plan       planFlags
	apply      applyFlags
}

func (a *app) workspaceOpenCommand() *cobra.Command {
	var r openRequest
	cmd := &cobra.Command{
		Annotations: streams(),
		Use:         "open BRANCH [-- COMMAND [ARG...]]",
		Short:       "Work on a branch: make its workspace as far as it is not there, and enter it",
		Long: "Run a command in the workspace of a branch, or a shell. What is not there yet is made\n" +
			"first, or brought up again: vmctl makes a plan of the workspace and of all that it needs,\n" +
			"asks once, and carries it out. If the workspace is there, the command runs at once.\n\n" +
			"For a branch without a workspace, a block is written into " + spec.WorkspacesFile + ". It is in the VM\n" +
			"that --in names, which may be left out if the files have one only. If nothing of the plan\n" +
			"was begun, the block is taken out again. BRANCH may also be the address of a workspace.\n\n" +
			"On a terminal the command has that terminal. The exit code is the command's, or 255 if it\n" +
			"was not run.",
		Args: between(1, -1, "a branch"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.name, r.command = args[0], args[1:]
			if dash := cmd.ArgsLenAtDash(); len(r.command) > 0 && dash != 1 {
				return before{err: rejected("usage", cmd.CommandPath()+" takes one branch: a command comes after --", cmd.CommandPath()+" --help tells more")}
			}
			return a.workspaceOpen(cmd.Context(), r)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&r.in, "in", "", "the `VM` of a new workspace")
	flags.BoolVar(&r.onHost, "on-host", false, "a new workspace is a worktree on this host, in no VM")
	flags.StringVar(&r.repo, "repo", "", "the `FOLDER` of the repository of a new workspace (default: that of the files)")
	flags.StringVar(&r.path, "path", "", "the `FOLDER` into which a new workspace is checked out (default: beside the others there)")
	r.apply.register(flags)
	flags.BoolVar(&r.plan.verbose, "verbose", false, "show every detail")
	r.plan.registerInterrupt(flags)
	return cmd
}

func (r openRequest) check(a *app) error {
	switch {
	case r.in != "" && r.onHost:
		return rejected("usage", "workspace open takes --in or --on-host, and not both")
	case r.path != "" && !path.IsAbs(r.path):
		return rejected("usage", fmt.Sprintf("open %s: --path is %q, and the folder of a workspace has an absolute path", r.name, r.path),
			"leave --path out: the workspace gets a folder of its own")
	case len(r.command) == 0:
		if _, err := a.attendedInput("vmctl workspace open without a command"); err != nil {
			return err
		}
	}
	return r.apply.check()
}

// again returns the arguments of the same request.
func (r openRequest) again() []string {
	args := []string{r.name}
	for _, f := range []struct{ flag, value string }{{"in", r.in}, {"repo", r.repo}, {"path", r.path}} {
		if f.value != "" {
			args = append(args, "--"+f.flag+"="+f.value)
		}
	}
	if r.onHost {
		args = append(args, "--on-host")
	}
	if len(r.command) > 0 {
		args = append(append(args, "--"), r.command...)
	}
	return args
}

// workspaceOpen enters the workspace of a branch, and makes it before if it is not there. While it makes it, another command
// may close it: it is opened again then.
func (a *app) workspaceOpen(ctx context.Context, r openRequest) error {
	if err := r.check(a); err != nil {
		return before{err: err}
	}
	const most = 3
	for range most {
		addr, isNew, err := a.blockToOpen(ctx, r)
		if err != nil {
			return before{err: err}
		}
		if !isNew {
			if err := a.use(ctx, addr, r); !isDown(err) {
				return err
			}
		}
		if err := a.bringUp(ctx, addr, r, isNew); err != nil {
			return before{err: err}
		}
		c, err := a.reread()
		if err != nil {
			return before{err: err}
		}
		if _, there := c.Resource(addr); there {
			r.broughtUp = true
			return a.use(ctx, addr, r)
		}
	}
	return before{err: newProblem(classRefused, "closed", "open "+r.name+": another command closes it again and again")}
}

// use runs the command of a request, or a shell, in a workspace that is there.
func (a *app) use(ctx context.Context, addr spec.Address, r openRequest) error {
	program := ""
	if len(r.command) > 0 {
		program = r.command[0]
	}
	return a.inWorkspace(ctx, addr.String(), "vmctl workspace open", program, func(w enteredWorkspace) error {
		if slices.ContainsFunc(w.object.Findings, func(f providers.Finding) bool { return f.Kind == providers.FindPartial }) {
			return before{err: newProblem(classFailed, "missing", addr.String()+" is only half there", a.commandLine("apply", planFlags{}))}
		}
		for _, due := range w.object.Due {
			if due.Access && !r.broughtUp {
				return before{err: newProblem(classFailed, "mount", "open "+addr.String()+": "+due.Reason, a.commandLine("apply", planFlags{}))}
			}
		}
		if len(r.command) == 0 || a.env.Terminal.In && a.env.Terminal.Out && !a.global.json {
			return a.attend(ctx, w, r.command)
		}
		return a.runIn(ctx, w, r.command)
	})
}

// isDown reports whether a workspace was not entered because it, or the VM around it, is not there or does not run, or could not
// be read, or because its mount is to be made anew.
func isDown(err error) bool {
	p, ok := errors.AsType[*problem](err)
	return ok && slices.Contains([]string{"missing", "not_running", "unknown", "mount"}, p.Code)
}

// toOpen finds the workspace that a request means; the zero address: there is none yet. It fails if the block of that one says
// something else than the request.
func (a *app) toOpen(ctx context.Context, c *spec.Config, r openRequest) (spec.Address, error) {
	all := workspacesAt(c, r.name)
	if len(all) == 0 {
		for _, one := range c.Resources {
			if one.Address.Kind == spec.Workspace && (one.Address.String() == r.name || one.Address.Block().String() == r.name) {
				all = append(all, one)
			}
		}
	}
	if len(all) == 0 {
		return spec.Address{}, nil
	}
	here := all
	switch {
	case r.onHost:
		here = slices.DeleteFunc(slices.Clone(all), func(one spec.Resource) bool { return one.Inside.Kind == spec.VM })
	case r.in != "":
		vm, err := vmOf(&project{config: c}, r.in)
		if err != nil {
			return spec.Address{}, err
		}
		here = slices.DeleteFunc(slices.Clone(all), func(one spec.Resource) bool { return one.Inside != vm })
	}
	switch len(here) {
	case 0:
		return spec.Address{}, rejected("usage", fmt.Sprintf("open %s: %s has that branch, and is somewhere else", r.name, all[0].Address),
			a.commandLine("workspace open", planFlags{}, all[0].Address.String()))
	case 1:
		return here[0].Address, a.says(ctx, c, here[0], r)
	default:
		var addrs []spec.Address
		for _, one := range here {
			addrs = append(addrs, one.Address)
		}
		return spec.Address{}, severalError(r.name, addrs)
	}
}

// says fails unless the block of a workspace has the repository and the path that a request asks for.
func (a *app) says(ctx context.Context, c *spec.Config, w spec.Resource, r openRequest) error {
	repo, folder := ctyread.Text(w.Want, "repo"), ctyread.Text(w.Want, "path")
	for _, f := range []struct {
		name, asked, written string
		same                 bool
	}{
		{"path", r.path, folder, path.Clean(r.path) == path.Clean(folder)},
		{"repo", r.repo, repo, r.repo == "" || r.repo == repo || workspaceHost(a.env).SameRepository(ctx, c.Dir, r.repo, repo)},
	} {
		if f.asked == "" || f.same {
			continue
		}
		open := r
		open.repo, open.path = "", ""
		return rejected("usage", fmt.Sprintf("open %s: its block %s says %s = %q, and --%s is %q: a block that is there is not changed", r.name, w.Address, f.name, f.written, f.name, f.asked),
			"open it as it is: "+a.commandLine("workspace open", planFlags{}, open.again()...),
			fmt.Sprintf("or change %s in %s, line %d, and apply", f.name, a.short(w.Range.Filename), w.Range.Start.Line))
	}
	return nil
}

// blockToOpen finds the workspace that a request means, or writes its block.
func (a *app) blockToOpen(ctx context.Context, r openRequest) (addr spec.Address, isNew bool, err error) {
	c, err := a.reread()
	if err != nil {
		return spec.Address{}, false, err
	}
	if addr, err = a.toOpen(ctx, c, r); err != nil || addr != (spec.Address{}) {
		return addr, false, err
	}
	p, err := a.open()
	if err != nil {
		return addr, false, err
	}
	if _, err := a.newWorkspace(ctx, p.config, r); err != nil { // before anything is locked
		return addr, false, err
	}
	err = a.editing(ctx, p, "workspace open", func() error {
		c, err := a.reread() // another one may have written it
		if err != nil {
			return err
		}
		if addr, err = a.toOpen(ctx, c, r); err != nil || addr != (spec.Address{}) {
			return err
		}
		w, err := a.newWorkspace(ctx, c, r)
		if err != nil {
			return err
		}
		if err := a.addBlock(c, w); err != nil {
			return err
		}
		addr, isNew = w.Address(), true
		view.Note(a.errScreen(), fmt.Sprintf("Wrote the block of %s into %s.", addr, spec.WorkspacesFile))
		return nil
	})
	return addr, isNew, err
}

// bringUp makes a plan of a workspace and of what it needs, asks once, and carries it out. If nothing of it was begun, a new
// block is taken out of the files again.
func (a *app) bringUp(ctx context.Context, addr spec.Address, r openRequest, isNew bool) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	w, ok := p.config.Resource(addr)
	if !ok {
		return nil // it was closed meanwhile
	}
	begun := false
	m := mission{
		command: "workspace open", names: r.again(), verb: "Open", title: "Plan to open " + addr.String(), plan: r.plan, apply: r.apply,
		options: func(s *state.Snapshot) (planner.Options, error) {
			o, err := a.options(p, s, r.plan)
			o.Scope.Targets = []spec.Address{addr}
			if w.Inside.Kind == spec.VM {
				o.Running = map[spec.Address]bool{w.Inside: true}
			}
			return o, err
		},
		// What could be read only after a VM had started was asked about with that.
		named: func(c planner.Change) bool { return begun && c.Address == addr && !removes(c) },
		enter: func(work) []string { begun = true; return nil },
	}
	if w.Inside.Kind == spec.VM {
		m.after = func() { a.nextApply(p, power{running: true}, []spec.Address{w.Inside}) }
	}
	err = a.carryOut(ctx, p, m)
	if err == nil || begun || !isNew {
		return err
	}
	return errors.Join(err, a.takeBack(context.WithoutCancel(ctx), p, addr))
}

func removes(c planner.Change) bool {
	return c.Action == providers.Destroy || c.Action == providers.ReplaceIt || c.Discards
}

// takeBack removes a block that this command wrote.
func (a *app) takeBack(ctx context.Context, p *project, addr spec.Address) error {
	return a.editing(ctx, p, "workspace open", func() error {
		removed, err := a.removeBlock(addr)
		if removed && err == nil {
			view.Note(a.errScreen(), fmt.Sprintf("Took the block of %s out of %s again.", addr, spec.WorkspacesFile))
		}
		return err
	})
}

// newWorkspace returns the workspace for a branch that has none.
func (a *app) newWorkspace(ctx context.Context, c *spec.Config, r openRequest) (spec.NewWorkspace, error) {
	w := spec.NewWorkspace{Branch: r.name, Repo: r.repo, Path: r.path, OnHost: r.onHost}
	if w.Repo == "" {
		w.Repo = "."
	}
	if err := workspaceHost(a.env).CheckBranch(ctx, c.Dir, w.Repo, w.Branch); err != nil {
		e := rejected("branch", fmt.Sprintf("open %s: %s", quoted(r.name), err))
		e.Next = []string{"--repo=FOLDER names the folder of another repository"}
		return w, e
	}
	if other, taken := c.Resource(w.Address()); taken {
		return w, rejected("label_taken", fmt.Sprintf("open %s: its block would be %s, which has another branch", r.name, other.Address),
			a.commandLine("workspace open", planFlags{}, other.Address.String())+" opens that one", "or write a block for "+r.name+" yourself, with another label")
	}
	var vm spec.Resource
	if !r.onHost {
		var err error
		if vm, err = a.vmToOpen(c, r); err != nil {
			return w, err
		}
		w.VM = vm.Address
	}
	if w.Path == "" {
		w.Path = a.newPath(c, w, vm)
	}
	return w, nil
}

// vmToOpen returns the VM of a new workspace.
func (a *app) vmToOpen(c *spec.Config, r openRequest) (spec.Resource, error) {
	if r.in != "" {
		addr, err := vmOf(&project{config: c}, r.in)
		vm, _ := c.Resource(addr)
		return vm, err
	}
	var all []spec.Resource
	for _, one := range c.Resources {
		if one.Address.Kind == spec.VM {
			all = append(all, one)
		}
	}
	switch len(all) {
	case 0:
		return spec.Resource{}, rejected("no_vm", fmt.Sprintf("open %s: the files have no VM to work in", r.name),
			`add one: vm "dev" {}, with what explain vm lists`,
			"or work on this host: "+a.commandLine("workspace open", planFlags{}, "--on-host", r.name))
	case 1:
		return all[0], nil
	}
	var names []string
	for _, one := range all {
		names = append(names, one.Address.String())
	}
	return spec.Resource{}, rejected("usage", fmt.Sprintf("open %s: the files have %d VMs: say which one: --in=VM", r.name, len(all)), "they are "+strings.Join(names, ", "))
}
