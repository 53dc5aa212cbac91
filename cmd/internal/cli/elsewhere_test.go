package cli_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/cli"
)

// templated has one VM whose template is elsewhere, and one that has none.
const templated = withID + `
vm "dev" {
  template = "template:docker"
}

vm "plain" {
  boot {
    kernel = "vmlinuz"
  }
}
`

// templates lets a house have templates. It counts how often one is fetched; the error is why none can be.
func (h *house) templates(fetched *int, err *error) {
	h.memory.fetch = func(context.Context, string) (string, error) {
		*fetched++
		return "env: {}\n", *err
	}
}

// plan, apply and validate read templates, each once; every other command works with those that were applied, and a
// completion reads none.
func TestPlanApplyAndValidateReadTemplates(t *testing.T) {
	h := newHouse(t, templated)
	var fetched int
	var err error
	h.templates(&fetched, &err)
	fetches := func(want int, args ...string) ending {
		t.Helper()
		fetched = 0
		e := h.run(args...)
		if fetched != want {
			t.Errorf("vmctl %s fetched %d templates, want %d", e.args, fetched, want)
		}
		return e
	}
	fetches(0, "vm", "start", "dev").exits(6).says("blocked vm.dev: its `template` stands elsewhere, and plan, apply and validate alone read it", "vmctl apply")
	fetches(0, "import", "vm.dev", "other", "--auto-approve").exits(6)
	h.acted()
	fetches(1, "validate").exits(0)
	fetches(1, "plan").exits(0).says("2 to create")
	fetches(1, "apply", "--auto-approve").exits(0)
	err = errors.New("no route to the Internet")
	for _, args := range [][]string{
		{"status"},
		{"show", "vm.dev"},
		{"vm", "stop", "dev"},
		{"vm", "start", "dev"},
		{"vm", "restart", "dev"},
		{"apply", "--heal", "--auto-approve"},
		{"drift"},
		{"graph"},
		{"doctor"},
		{"output"},
		{"state", "list"},
		{"job", "list"},
		{"__complete", "vm", "start", ""},
		{"__complete", "show", ""},
		{"__complete", "plan", "--target", ""},
		{"__complete", "apply", "--exclude", ""},
		{"plan", "--destroy"},
	} {
		fetches(0, args...).exits(0)
	}
	fetches(0, "graph", "--plan").exits(0)
	fetches(0, "destroy", "--auto-approve").exits(0)
}

// A template that cannot be read blocks its VM, and no other.
func TestAnUnreadTemplateBlocksItsVM(t *testing.T) {
	h := newHouse(t, templated)
	var fetched int
	err := errors.New("no route to the Internet")
	h.templates(&fetched, &err)
	const reason = "Its whole text cannot be had: no route to the Internet."
	h.run("validate").exits(3).warns("Unreadable template", reason, "main.vmctl.hcl line 8")
	h.run("plan").exits(0).says("blocked vm.dev: "+reason, "1 to create")
	h.run("apply", "--auto-approve").exits(6).says("blocked vm.dev: " + reason)
	h.run("apply", "--auto-approve", "--target=vm.dev").exits(6)
	h.acted()
	h.run("apply", "--auto-approve", "--target=vm.plain").exits(0)
	h.run("apply", "--auto-approve", "--exclude=vm.dev").exits(0)
	err = nil
	h.run("apply", "--auto-approve").exits(0)
	err = errors.New("no route to the Internet")
	h.memory.acted = nil
	h.run("plan").exits(0).says("blocked vm.dev: " + reason).silent("env: {}")
	h.run("apply", "--auto-approve").exits(6)
	h.acted()
}

// An interrupt during a fetch ends the command.
func TestInterruptedFetch(t *testing.T) {
	for _, args := range [][]string{{"plan"}, {"apply", "--auto-approve"}, {"validate"}} {
		h := newHouse(t, templated)
		ctx, interrupt := context.WithCancel(t.Context())
		h.memory.fetch = func(ctx context.Context, _ string) (string, error) {
			interrupt()
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		h.runIn(ctx, args...).exits(130).warns("interrupted while the files were read: nothing was changed")
		h.acted()
	}
}

// All fetches of a command have one deadline.
func TestFetchesHaveOneDeadline(t *testing.T) {
	now, m := noon(), newMemory()
	m.fetch = func(ctx context.Context, _ string) (string, error) {
		now = now.Add(40 * time.Second)
		return "env: {}\n", context.Cause(ctx)
	}
	want := cty.ObjectVal(map[string]cty.Value{"template": cty.StringVal("template:docker")})
	reasons := cli.FetchMore(t.Context(), m.types(), func() time.Time { return now }, want, 3)
	over := "Its whole text cannot be had: the time for all texts of the spec that stand elsewhere, 1m0s, is over."
	if diff := cmp.Diff([]string{"", "", over}, reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}
