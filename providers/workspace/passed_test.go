package workspace_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers/workspace"
)

// What an env block sets wins over what it passes on.
func TestSetWinsOverPass(t *testing.T) {
	block := cty.ObjectVal(map[string]cty.Value{
		"pass": cty.ListVal([]cty.Value{cty.StringVal("MODE"), cty.StringVal("TOKEN*")}),
		"set":  cty.MapVal(map[string]cty.Value{"MODE": cty.StringVal("block")}),
	})
	here := []string{"MODE=here", "TOKEN_A=a"}
	if diff := cmp.Diff([]string{"TOKEN_A=a"}, workspace.Passed(block, here)); diff != "" {
		t.Errorf("a command gets (-want +got):\n%s", diff)
	}
}
