package main

import (
	"context"
	"encoding/json"
	"io"
	"os/signal"
	"strings"

	"github.com/lima-vm/lima/v2/pkg/downloader"
	"github.com/lima-vm/lima/v2/pkg/version"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
)

// streams are the standard streams of the process.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// failure is the document that a failed command prints instead of its result.
type failure struct {
	Error string `json:"error"`
}

// run does what the arguments say and returns the exit status. The result is one JSON document on
// out, a failure, too; Lima's log goes to err, one JSON document per line. The two services, which
// run until they are stopped, print their failure to err alone.
func run(ctx context.Context, args []string, std streams) int {
	logrus.SetOutput(std.err)
	logrus.SetFormatter(new(logrus.JSONFormatter))
	downloader.HideProgress = true // a bar between the log's lines

	root := rootCommand(std)
	root.SetArgs(args)
	executed, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	logrus.Error(err)
	if executed.Annotations[serviceKey] == "" {
		if err := printJSON(std.out, failure{Error: err.Error()}); err != nil {
			logrus.Error(err)
		}
	}
	return 1
}

// serviceKey is the annotation of commands whose standard output belongs to Lima.
const serviceKey = "service"

func rootCommand(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:               "vmctl-lima",
		Short:             "Do one act of Lima for vmctl",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	debug := root.PersistentFlags().Bool("debug", false, "log more")
	root.PersistentPreRun = func(*cobra.Command, []string) {
		if *debug {
			logrus.SetLevel(logrus.DebugLevel)
		}
	}
	root.AddCommand(
		versionCommand(), checkCommand(), embedCommand(), makeCommand(), startCommand(), deleteCommand(), diskCommand(), messageCommand(),
		hostagentCommand(), usernetCommand(),
	)
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of Lima's packages",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printJSON(cmd.OutOrStdout(), struct {
				Lima string `json:"lima"`
			}{strings.TrimPrefix(version.Version, "v")})
		},
	}
}

// act returns the RunE of a command that makes one result. A request to end cancels its context,
// so that it cleans up and ends the programs that it runs.
func act(do func(ctx context.Context, cmd *cobra.Command, args []string) (result any, err error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), endSignals()...)
		defer stop()
		result, err := do(ctx, cmd, args)
		if err != nil {
			return err
		}
		return printJSON(cmd.OutOrStdout(), result)
	}
}

func printJSON(w io.Writer, document any) error {
	return json.NewEncoder(w).Encode(document)
}
