package cli

import (
	"context"

	"github.com/spf13/cobra"

	"vmctl/internal/shellword"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// importRequest holds the arguments and flags of an import.
type importRequest struct {
	address, id string
	apply       applyFlags
	generate    bool
	out         string // a file; "": standard output
	provider    string // where to look; "": wherever the files lead
	compose     string // a compose file; "": none
	engine      string // of the containers of the compose file; "": the only one
}

func (a *app) importCommand() *cobra.Command {
	var r importRequest
	cmd := &cobra.Command{
		Annotations: streams(),
		Use:         "import ADDR ID | --compose FILE",
		Short:       "Let vmctl manage an object that exists",
		Long: "Let vmctl manage an object that exists: the object gets the owner mark of ADDR, and\n" +
			"is changed where the block says something else. If it is a VM that runs, the command\n" +
			"waits until it is ready. The command shows the plan and asks.\n\n" +
			"ID is the system's own name of the object: a domain's name or UUID; a volume's path,\n" +
			"or pool/name; the name of an instance or a disk of Lima. An import block does the same\n" +
			"as a part of apply:\n\n" +
			"  import {\n" +
			"    to = vm.dev\n" +
			"    id = \"my-vm\"\n" +
			"  }\n\n" +
			"--generate changes nothing. It writes that import block, a block that describes the\n" +
			"object as it is, and blocks for the object's disks, to standard output or to the new\n" +
			"file that --out names. With these blocks, the plan contains the import and nothing\n" +
			"else.\n\n" +
			"--compose changes nothing either. It writes blocks for the services, networks, volumes\n" +
			"and images of a compose file. What no block can say becomes a comment with the reason.\n" +
			"Variables are those of the environment and of a file .env beside it.",
		Args: func(cmd *cobra.Command, args []string) error {
			if r.compose != "" {
				return between(0, 0, "")(cmd, args)
			}
			return between(2, 2, "an address and what the object's system calls it")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case r.compose != "" && (r.generate || r.provider != ""):
				return rejected("usage", "import: --compose takes neither --generate nor --provider")
			case r.compose != "":
				return a.importCompose(r)
			case r.engine != "":
				return rejected("usage", "import: --engine is for --compose")
			}
			r.address, r.id = args[0], args[1]
			if r.generate {
				return a.generate(cmd.Context(), r)
			}
			if r.out+r.provider != "" {
				return rejected("usage", "import: --out and --provider are for --generate, and --out is for --compose")
			}
			return a.importObject(cmd.Context(), r)
		},
	}
	r.apply.register(cmd.Flags())
	cmd.Flags().BoolVar(&r.generate, "generate", false, "write blocks that describe the object, and change nothing")
	cmd.Flags().StringVar(&r.out, "out", "", "with --generate or --compose: write them to the new `FILE`")
	cmd.Flags().StringVar(&r.provider, "provider", "", "with --generate: look in `NAME` only, like provider.libvirt.here")
	cmd.Flags().StringVar(&r.compose, "compose", "", "write blocks for what the compose `FILE` declares, and change nothing")
	cmd.Flags().StringVar(&r.engine, "engine", "", "with --compose: put them into the engine `NAME`")
	return cmd
}

func (a *app) importObject(ctx context.Context, r importRequest) error {
	if err := r.apply.check(); err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	found, err := p.config.Lookup(r.address)
	if err != nil {
		return rejected("unknown_resource", "import: "+err.Error(),
			a.commandLine("import", planFlags{}, "--generate", r.address, r.id)+" writes its block")
	}
	if len(found) != 1 {
		return severalError(r.address, found)
	}
	addr := found[0]
	return a.carryOut(ctx, p, mission{
		command: "import", names: []string{r.address, r.id}, verb: "Import", title: "Import " + addr.String(), apply: r.apply,
		idle: func(*planner.Plan) string { return addr.String() + " is that object already, and is as the files say." },
		options: func(*state.Snapshot) (planner.Options, error) {
			return planner.Options{
				Types: a.types, Project: p.owner, Scope: planner.Scope{Targets: []spec.Address{addr}, Alone: true},
				Imports: map[spec.Address]providers.ID{addr: providers.ID(r.id)},
			}, nil
		},
	})
}

// importLine returns the command that imports an object.
func (a *app) importLine(addr spec.Address, id string) string {
	return a.commandLine("import", planFlags{}) + " " + shellword.Join([]string{addr.String(), id})
}
