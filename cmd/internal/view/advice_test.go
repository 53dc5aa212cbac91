package view_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
)

func TestAdvice(t *testing.T) {
	own := view.OwnFlags{Global: []string{"-C", "a b", "--var=size=..."}, Plan: []string{"--target=vm.dev"}}
	for _, test := range []struct {
		name   string
		own    view.OwnFlags
		advice []providers.Advice
		want   []string
	}{
		{name: "nothing to do"},
		{
			name: "words stay as they are", own: own, advice: providers.Say("run vmctl where the keys are", "virsh -c 'qemu:///system' list"),
			want: []string{"run vmctl where the keys are", "virsh -c 'qemu:///system' list"},
		},
		{
			name: "plan and apply are limited as this run is", own: own, advice: append(providers.Vmctl("plan"), providers.SayVmctl("then: ", "apply")...),
			want: []string{"vmctl plan -C 'a b' --var=size=... --target=vm.dev", "then: vmctl apply -C 'a b' --var=size=... --target=vm.dev"},
		},
		{
			name: "an apply with a scope of its own", own: own, advice: providers.Vmctl("apply", "--allow-replace=vm.dev"),
			want: []string{"vmctl -C 'a b' --var=size=... apply --allow-replace=vm.dev"},
		},
		{
			name: "another command", own: own, advice: providers.SayVmctl("free it: ", "disk", "unlock", `disk.data["a"]`),
			want: []string{`free it: vmctl -C 'a b' --var=size=... disk unlock 'disk.data["a"]'`},
		},
		{
			name: "no own flags", advice: append(providers.Vmctl("plan"), providers.Vmctl("vm", "stop", "vm.dev")...),
			want: []string{"vmctl plan", "vmctl vm stop vm.dev"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if d := cmp.Diff(test.want, test.own.Advice(test.advice)); d != "" {
				t.Errorf("advice (-want +got):\n%s", d)
			}
		})
	}
}

// A finding says what the plan does about it, and then what to type, with the user's own flags.
func TestFindingsHaveTheUsersFlags(t *testing.T) {
	own := view.OwnFlags{Global: []string{"--env=two"}}
	found := []providers.Finding{{
		Kind: providers.FindNoKey, Evidence: []string{"id_ed25519 is missing"}, Action: "left as it is",
		Next: providers.SayVmctl("to give the guest new keys: ", "vm", "rekey", "vm.dev"),
	}}
	const want = "left as it is; to give the guest new keys: vmctl --env=two vm rekey vm.dev"
	if got := view.FindingEntries(found, own)[0].Action; got != want {
		t.Errorf("JSON says %q, want %q", got, want)
	}
	plan := &planner.Plan{Findings: found}
	if got := on(0, func(s view.Screen) { view.Plan(s, plan, view.PlanOptions{Own: own}) }); !strings.Contains(got, want) {
		t.Errorf("the plan lacks %q:\n%s", want, got)
	}
}
