package spec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

func TestAdopt(t *testing.T) {
	const src = `vm "b" {}

vm "a" {
  cpus   = 2 # two
  memory = var.memory

  stop {
    grace = "10s"
  }

  port_forward {
    guest = 80
  }

  provision "x" {
    script = "true"
    run    = "once"
  }
}
`
	forward := cty.ObjectVal(map[string]cty.Value{
		"guest": cty.NumberIntVal(81), "host": cty.StringVal("8081"), "host_ip": cty.StringVal("127.0.0.1"), "protocol": cty.StringVal("tcp"),
	})
	for _, test := range []struct {
		name, path string
		value      cty.Value
		old, new   string // of src; "": the error is fails
		fails      string
	}{
		{name: "a literal, with its comment", path: "cpus", value: cty.NumberIntVal(4), old: "cpus   = 2 # two", new: "cpus   = 4 # two"},
		{name: "in a block", path: "stop.grace", value: cty.NumberIntVal(90), old: `grace = "10s"`, new: `grace = "1m30s"`},
		{name: "in a block with a label", path: "provision.x.run", value: cty.StringVal("on_change"), old: `run    = "once"`, new: `run    = "on_change"`},
		{name: "blocks of one name", path: "port_forward", value: cty.TupleVal([]cty.Value{forward}), old: "    guest = 80\n", new: "    guest = 81\n    host  = \"8081\"\n"},
		{name: "nothing any more", path: "cpus", value: cty.NullVal(cty.Number), old: "  cpus   = 2 # two\n", new: ""},
		{name: "an expression", path: "memory", value: cty.NumberIntVal(1 << 30), fails: "`memory` stands in an expression, `var.memory`: change it there"},
		{name: "a digest", path: "boot.kernel_sha256", value: cty.StringVal("x"), fails: "`boot.kernel_sha256` is not written in a block"},
		{name: "a number out of its range", path: "cpus", value: cty.NumberFloatVal(1.5), fails: "`cpus`"},
		{name: "no attribute", path: "nothing", value: cty.True, fails: "`nothing` is not in the language"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := spec.Adopt([]byte(src), "main.vmctl.hcl", spec.Address{Kind: spec.VM, Name: "a"}, []spec.Adopted{{Path: test.path, Value: test.value}})
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Fatalf("error %v, want %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(src, test.old, test.new, 1)
			if !sameButOrder(want, string(got)) {
				t.Errorf("the file (-want +got):\n%s", cmp.Diff(want, string(got)))
			}
		})
	}
	for _, to := range []spec.Address{{Kind: spec.VM, Name: "c"}, {Kind: spec.VM, Name: "a", Key: "k"}} {
		if _, err := spec.Adopt([]byte(src), "main.vmctl.hcl", to, nil); err == nil {
			t.Errorf("%s has no block of its own, and was written", to)
		}
	}
}

// sameButOrder reports whether two texts have the same lines that are not empty: blocks that are
// written anew stand at the end.
func sameButOrder(a, b string) bool {
	count := map[string]int{}
	for line := range strings.Lines(a) {
		count[strings.Join(strings.Fields(line), " ")]++
	}
	for line := range strings.Lines(b) {
		count[strings.Join(strings.Fields(line), " ")]--
	}
	delete(count, "")
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
