package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/spec"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "List the blocks of the language; with --json all of it, for editors and checks",
		Args:  between(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			doc := view.SchemaJSON()
			a.show(doc, func(s view.Screen) { view.Schema(s, doc, a.commandLine("explain", planFlags{}, "vm")) })
			return nil
		},
	}
}

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain PATH",
		Short: "Explain a block or an attribute: vm, vm.stop, vm.stop.grace, provider.libvirt.uri",
		Args:  one("the path of a block or an attribute, such as vm.stop.grace"),
		RunE: func(_ *cobra.Command, args []string) error {
			doc, err := a.explained(args[0])
			if err != nil {
				return err
			}
			a.show(doc, func(s view.Screen) { view.Explain(s, doc) })
			return nil
		},
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		done := toComplete[:strings.LastIndexByte(toComplete, '.')+1]
		var all []string
		for _, name := range namesUnder(strings.Split(done, ".")) {
			all = append(all, done+name)
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return cmd
}

// explained finds a block or an attribute by its path.
func (a *app) explained(path string) (view.ExplainDocument, error) {
	doc := view.ExplainDocument{FormatVersion: view.FormatVersion, Path: path}
	steps := strings.Split(path, ".")
	top := view.SchemaJSON()
	at, blocks := 0, top.Blocks
	if steps[0] == "provider" && len(steps) > 1 {
		at, blocks = 1, top.Providers
	}
	block, ok := blocks[steps[at]]
	for at++; ok && at < len(steps); at++ {
		if attribute, is := block.Attributes[steps[at]]; is && at == len(steps)-1 {
			doc.Attribute = &attribute
			return doc, nil
		}
		block, ok = block.Blocks[steps[at]]
	}
	if ok {
		doc.Block = &block
		return doc, nil
	}
	wrong := steps[at-1]
	names := namesUnder(steps[:at])
	message := "explain " + path + ": the language has no " + quoted(strings.Join(steps[:at], ".")) + "." + spec.DidYouMean(wrong, names)
	return doc, rejected("unknown_path", message, a.commandLine("schema", planFlags{})+" lists the blocks; "+a.commandLine("explain", planFlags{}, "vm")+" lists what is in one")
}

// namesUnder lists the names beside the last step of a path: the blocks and attributes of the block
// above it.
func namesUnder(steps []string) []string {
	top := view.SchemaJSON()
	if len(steps) <= 1 {
		return append(slices.Sorted(maps.Keys(top.Blocks)), "provider")
	}
	blocks, at := top.Blocks, 0
	if steps[0] == "provider" {
		if len(steps) == 2 {
			return slices.Sorted(maps.Keys(top.Providers))
		}
		blocks, at = top.Providers, 1
	}
	block, ok := blocks[steps[at]]
	for at++; ok && at < len(steps)-1; at++ {
		block, ok = block.Blocks[steps[at]]
	}
	if !ok {
		return nil
	}
	return append(slices.Sorted(maps.Keys(block.Attributes)), slices.Sorted(maps.Keys(block.Blocks))...)
}
