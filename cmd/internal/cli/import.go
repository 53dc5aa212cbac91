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
}

func (a *app) importCommand() *cobra.Command {
	var r importRequest
	cmd := &cobra.Command{
		Annotations: streams(),
		Use:         "import ADDR ID",
		Short:       "Take over what vmctl did not make",
		Long: "Let an object that exists become the one of a block: it gets the owner mark, and\n" +
			"stays as it is where the block says so; one that runs is waited for until it is\n" +
			"ready. Plan shows what would change, and asks.\n\n" +
			"ID is what the object's system calls it: a domain's name or UUID; a volume's path,\n" +
			"or pool/name. An import block does the same as a part of apply:\n\n" +
			"  import {\n    to = vm.dev\n    id = \"my-vm\"\n  }\n\n" +
			"--generate changes nothing: it writes that block, and the one of the object as it\n" +
			"is, of its disks too, to standard output or to the new file that --out names. The\n" +
			"plan of it is the import and nothing else.",
		Args: between(2, 2, "an address and what the object's system calls it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.address, r.id = args[0], args[1]
			if r.generate {
				return a.generate(cmd.Context(), r)
			}
			if r.out+r.provider != "" {
				return rejected("usage", "import: --out and --provider are for --generate")
			}
			return a.importObject(cmd.Context(), r)
		},
	}
	r.apply.register(cmd.Flags())
	cmd.Flags().BoolVar(&r.generate, "generate", false, "write the blocks of what is there, and change nothing")
	cmd.Flags().StringVar(&r.out, "out", "", "with --generate: write them to the new `FILE`")
	cmd.Flags().StringVar(&r.provider, "provider", "", "with --generate: look in `NAME` only, like provider.libvirt.here")
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
