package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/cmd/internal/view"
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
