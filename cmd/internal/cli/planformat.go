package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"vmctl/cmd/internal/view"
)

// planLook says how a plan is shown.
type planLook struct {
	format   string
	maxBytes int // of Markdown; 0: any size
}

// planFormats lists the formats of plan and show, beside --json.
func planFormats() []string { return []string{"text", "markdown", "terraform-json"} }

func (l *planLook) register(flags *pflag.FlagSet) {
	flags.StringVar(&l.format, "format", "text", "text, markdown or terraform-json (as terraform show -json writes it), as `FORMAT`")
	flags.IntVar(&l.maxBytes, "max-bytes", 0, "at most `N` bytes of Markdown: steps and changes in the middle are left out")
}

func (l *planLook) check(json bool) error {
	switch {
	case !slices.Contains(planFormats(), l.format):
		return rejected("usage", "read --format: there is no format "+quoted(l.format), "the formats are "+strings.Join(planFormats(), ", ")+"; and --json")
	case json && l.format != "text":
		return rejected("usage", "take --json or --format="+l.format+", and not both")
	case l.maxBytes < 0 || l.maxBytes > 0 && l.format != "markdown":
		return rejected("usage", "read --max-bytes: it takes a positive number, with --format=markdown")
	default:
		return nil
	}
}

// showMarkdown shows a plan as Markdown. file is the plan file that has all of it; "": none.
func (a *app) showMarkdown(doc view.PlanDocument, l planLook, file string) {
	rest := a.commandLine("plan", planFlags{})
	if file != "" {
		rest = a.commandLine("show", planFlags{}, file)
	}
	view.Markdown(a.screen(), view.PlanMarkdown(doc, view.MarkdownOptions{MaxBytes: l.maxBytes, Rest: rest}))
}
