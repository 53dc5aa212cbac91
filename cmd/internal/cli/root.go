package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"vmctl/internal/pattern"
	"vmctl/spec"
)

// globalFlags holds the flags that every command has.
type globalFlags struct {
	dir      string
	env      string
	dataDir  string
	vars     []string
	varFiles []string
	json     bool
	noColor  bool
	logLevel string
	level    slog.Level
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "vmctl",
		Short: "Reconcile virtual machines with checked-in HCL files",
		Long: "vmctl reads *.vmctl.hcl files, shows every difference between them and the real\n" +
			"world with the exact steps that will close it, and carries out these steps.\n" +
			"Resources that name no provider belong to provider." + a.builtInType() + ".default.\n\n" +
			"Start with: vmctl init, vmctl plan, vmctl apply.",
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              cobra.ArbitraryArgs,
		RunE:              a.group,
		PersistentPreRunE: a.prepare,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(a.flagError)
	help := a.helpCommand()
	root.SetHelpCommand(help)
	a.globals(root.PersistentFlags())
	a.global.level = levelNone
	root.AddCommand(
		a.initCommand(), a.validateCommand(), a.fmtCommand(), a.planCommand(), a.applyCommand(), a.destroyCommand(),
		a.driftCommand(), a.importCommand(), a.schemaCommand(), a.explainCommand(),
		a.statusCommand(), a.showCommand(), a.outputCommand(), a.graphCommand(), a.doctorCommand(), a.versionCommand(),
		a.completionCommand(), a.stateCommand(), a.lockCommand(), a.cacheCommand(), a.leaksCommand(), a.cleanupCommand(),
		a.vmCommand(), a.diskCommand(), a.engineCommand(), a.containerCommand(), a.workspaceCommand(), a.jobCommand(),
		a.simVMCommand(), a.jobWorkerCommand(), a.mountTransportCommand(), a.serveEngineCommand(),
	)
	root.Flags().BoolVar(&a.showsVersion, "version", false, "show the version of vmctl")
	root.AddCommand(help) // offers looks it up
	if a.completes() {
		a.offers(root)
	}
	return root
}

func (a *app) globals(f *pflag.FlagSet) {
	g := &a.global
	f.StringVarP(&g.dir, "chdir", "C", "", "use the files in `DIR`")
	f.StringVar(&g.env, "env", "", "a second instance of the same files, `NAME`, with objects and a data directory of its own")
	f.StringVar(&g.dataDir, "data-dir", "", "keep state, keys and locks in `DIR` (VMCTL_DATA_DIR)")
	f.StringArrayVar(&g.vars, "var", nil, "set a variable: `NAME=VALUE` (VMCTL_VAR_NAME)")
	f.StringArrayVar(&g.varFiles, "var-file", nil, "set the variables that `FILE` has")
	f.BoolVar(&g.json, "json", false, "write one JSON document")
	f.BoolVar(&g.noColor, "no-color", false, "no color (NO_COLOR)")
	f.StringVar(&g.logLevel, "log-level", "", "log to standard error from `LEVEL` up: trace, debug, info, warn, error, fatal (VMCTL_LOG)")
}

// prepare reads the log level, for every command.
func (a *app) prepare(*cobra.Command, []string) (err error) {
	a.global.level, err = a.logLevel()
	return err
}

// logLevel returns the level of --log-level or VMCTL_LOG, levelNone if neither is set.
func (a *app) logLevel() (slog.Level, error) {
	if a.global.logLevel != "" {
		return parseLevel(a.global.logLevel, "--log-level")
	}
	if text := a.getenv("VMCTL_LOG"); text != "" {
		return parseLevel(text, "VMCTL_LOG")
	}
	return levelNone, nil
}

// group runs a command that only holds other commands. It shows the help if no command was
// named, and fails if an unknown one was.
func (a *app) group(cmd *cobra.Command, args []string) error {
	if a.showsVersion && len(args) == 0 {
		return a.version()
	}
	if len(args) == 0 {
		if a.global.json {
			return rejected("usage", cmd.CommandPath()+" needs a command", cmd.CommandPath()+" --help lists the commands")
		}
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	message := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	next := []string{cmd.CommandPath() + " --help lists the commands"}
	near := namesakes(cmd, args[0])
	if len(near) == 0 {
		for _, name := range cmd.SuggestionsFor(args[0]) {
			near = append(near, cmd.CommandPath()+" "+name)
		}
	}
	if len(near) > 0 {
		slices.Sort(near)
		next = append([]string{"did you mean " + strings.Join(near, ", or ") + "?"}, next...)
	}
	return rejected("unknown_command", message, next...)
}

var singleDash = pattern.New(`^-([a-z][a-z-]+)(=.*)?$`)

// flagError explains a flag that cannot be read. It recognises a long flag with one dash by
// its name.
func (a *app) flagError(cmd *cobra.Command, err error) error {
	a.global.json = a.global.json || wantsJSON(a.env.Args)
	help := cmd.CommandPath() + " --help lists the flags"
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if m := singleDash.FindStringSubmatch("-" + unknown.GetSpecifiedShortnames()); m != nil && cmd.Flags().Lookup(m[1]) != nil {
			return rejected("usage", "unknown flag -"+m[1], "did you mean --"+m[1]+"?", help)
		}
	}
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := spec.DidYouMean(unknown.GetSpecifiedName(), names); near != "" {
			name := strings.Trim(near[strings.IndexByte(near, '"'):], `"?`)
			return rejected("usage", err.Error(), "did you mean --"+name+"?", help)
		}
	}
	return rejected("usage", err.Error(), help)
}

// namesakes lists the commands below a command that a word means: those of groups, such as
// `vmctl vm start` for start, and those that other tools call so.
func namesakes(cmd *cobra.Command, word string) []string {
	var all []string
	for _, group := range cmd.Commands() {
		for _, sub := range group.Commands() {
			if sub.Name() == word && !sub.Hidden && !group.Hidden {
				all = append(all, sub.CommandPath())
			}
		}
	}
	root, below, _ := strings.Cut(cmd.CommandPath(), " ")
	for _, other := range otherNames[strings.TrimPrefix(below+" "+word, " ")] {
		if own := root + " " + other; !slices.Contains(all, own) {
			all = append(all, own)
		}
	}
	return all
}

// wantsJSON looks for --json before the flags are parsed, so that an error in
// them can be a document too.
func wantsJSON(args []string) bool {
	for _, arg := range args {
		if arg == "--" {
			return false
		}
		if arg == "--json" || arg == "--json=true" {
			return true
		}
	}
	return false
}

// one demands one argument; name describes it in the error.
func one(name string) cobra.PositionalArgs { return between(1, 1, name) }

// between demands at least least and at most most arguments. most < 0 is any number.
func between(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		help := cmd.CommandPath() + " --help tells more"
		switch {
		case len(args) < least:
			return rejected("usage", cmd.CommandPath()+" needs "+names, help)
		case most == 0 && len(args) > 0:
			return rejected("usage", fmt.Sprintf("%s takes no argument, and got %q", cmd.CommandPath(), args[0]), help)
		case most >= 0 && len(args) > most:
			return rejected("usage", fmt.Sprintf("%s takes %s, and got %q beyond that", cmd.CommandPath(), names, args[most]), help)
		default:
			return nil
		}
	}
}
