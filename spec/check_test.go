package spec_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

const checked = `
provider "sim" "here" {}

variable "token" {
  sensitive = true
  default   = "hunter2"
}

vm "dev" {
  provider = provider.sim.here
  memory   = "256MiB"
  boot { kernel = "kernel" }
  %s
}

%s
`

// checksOf returns the conditions of a spec in words, with the computed values of vm.dev.
func checksOf(t *testing.T, lifecycle, more string, dev map[string]cty.Value, evaluate func(*spec.Config, map[spec.Address]cty.Value) []spec.Check) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.vmctl.hcl"), fmt.Appendf(nil, checked, lifecycle, more))
	write(t, filepath.Join(dir, "kernel"), []byte("kernel"))
	c, diags := spec.Load(dir, spec.Inputs{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	values := map[spec.Address]cty.Value{}
	if dev != nil {
		values[spec.Address{Kind: spec.VM, Name: "dev"}] = cty.ObjectVal(dev)
	}
	var lines []string
	for _, one := range evaluate(c, values) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %d: %s %s", one, one.Index, one.Status, one.Message)))
	}
	return strings.Join(lines, "\n")
}

func TestChecksAreEvaluatedWithTheValuesOfObjects(t *testing.T) {
	const blocks = `
check "c" {
  assert {
    condition     = vm.dev.memory == "256MiB"
    error_message = "it has ${vm.dev.memory}"
  }
  assert {
    condition     = vm.dev.address == "192.0.2.1"
    error_message = "it is at ${vm.dev.address}"
  }
  assert {
    condition     = [true][vm.dev.ssh_port]
    error_message = "no"
  }
}`
	for _, test := range []struct {
		name string
		dev  map[string]cty.Value
		now  bool
		want string
	}{
		{name: "no object", want: "check.c 0: pass\ncheck.c 1: unknown\ncheck.c 2: unknown"},
		{
			name: "an object", dev: map[string]cty.Value{"address": cty.StringVal("192.0.2.2"), "ssh_port": cty.NumberIntVal(22)},
			want: "check.c 0: pass\ncheck.c 1: fail it is at 192.0.2.2\ncheck.c 2: error Invalid index: The given key does not identify an element in this collection value.",
		},
		{
			name: "memory of the object, which the files say", dev: map[string]cty.Value{"memory": cty.NumberIntVal(1 << 30), "address": cty.StringVal("192.0.2.1")},
			want: "check.c 0: pass\ncheck.c 1: pass\ncheck.c 2: unknown",
		},
		{
			name: "memory of the object, as it is", dev: map[string]cty.Value{"memory": cty.NumberIntVal(1 << 30), "address": cty.StringVal("192.0.2.1")}, now: true,
			want: "check.c 0: fail it has 1GiB\ncheck.c 1: pass\ncheck.c 2: unknown",
		},
	} {
		evaluate := (*spec.Config).Checks
		if test.now {
			evaluate = (*spec.Config).ObservedChecks
		}
		if diff := cmp.Diff(test.want, checksOf(t, "", blocks, test.dev, evaluate)); diff != "" {
			t.Errorf("%s: checks (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestConditionsOfAResource(t *testing.T) {
	const lifecycle = `
  lifecycle {
    postcondition {
      condition     = self.address != "" && self.memory == "256MiB"
      error_message = "it has no address"
    }
    precondition {
      condition     = disk.data.id != "" && var.token != "hunter2"
      error_message = "the token is wrong"
    }
  }`
	const disk = `
disk "data" {
  provider = provider.sim.here
  size     = "1GiB"
}`
	var uses []spec.Address
	got := checksOf(t, lifecycle, disk, map[string]cty.Value{"address": cty.StringVal("")}, func(c *spec.Config, values map[spec.Address]cty.Value) []spec.Check {
		dev, _ := c.Resource(spec.Address{Kind: spec.VM, Name: "dev"})
		uses = dev.Uses
		values[spec.Address{Kind: spec.Disk, Name: "data"}] = cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("d")})
		return c.Conditions(dev.Address, values)
	})
	want := "the precondition of vm.dev 0: fail the token is wrong\nthe postcondition of vm.dev 0: fail it has no address"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]spec.Address{{Kind: spec.Disk, Name: "data"}}, uses); diff != "" {
		t.Errorf("vm.dev uses what its conditions refer to (-want +got):\n%s", diff)
	}
}

// A command that acts on existing objects goes on with a spec that has mistakes: the text is masked there.
func TestAMessageNeverShowsASensitiveValue(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.vmctl.hcl"), fmt.Appendf(nil, checked, "", `
check "c" {
  assert {
    condition     = vm.dev.memory == "x"
    error_message = "it is ${var.token}"
  }
}`))
	write(t, filepath.Join(dir, "kernel"), []byte("kernel"))
	c, diags := spec.Load(dir, spec.Inputs{Partial: true})
	if want := "The `error_message` of `check.c` contains a sensitive value"; !strings.Contains(diags.Error(), want) {
		t.Errorf("the spec is read with %q, want %q", diags, want)
	}
	all := c.Checks(nil)
	if want := "its error_message is not shown: it contains a sensitive value"; len(all) != 1 || all[0].Status != spec.CheckFails || all[0].Message != want {
		t.Errorf("the checks are %+v, want one that fails: %s", all, want)
	}
}

// The conditions of many instances, each about another instance, take the work of each once: twice as many take no more than
// twice the memory, and some.
func TestConditionsOfManyInstancesAreLinear(t *testing.T) {
	work := func(n int) (whole, each float64) {
		c := good(t, fmt.Sprintf(`
locals {
  names = toset([for i in range(%d) : "n${i}"])
}
disk "d" {
  for_each = local.names
  size     = "1MiB"
}
vm "web" {
  for_each = local.names
  boot {
    kernel = "kernel"
  }
  lifecycle {
    precondition {
      condition     = disk.d[each.key].id != "" && disk.d[each.value].size == "1MiB"
      error_message = "no"
    }
    postcondition {
      condition     = self.cpus == 2
      error_message = "no"
    }
  }
}
`, n))
		values := map[spec.Address]cty.Value{}
		for i := range n {
			values[spec.Address{Kind: spec.Disk, Name: "d", Key: fmt.Sprintf("n%d", i)}] = cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal("x")})
		}
		passes := func(all []spec.Check) {
			for _, one := range all {
				if one.Status != spec.CheckPasses {
					t.Fatalf("%s is %s: %s", one, one.Status, one.Message)
				}
			}
		}
		whole = testing.AllocsPerRun(3, func() {
			if all := c.Checks(values); len(all) != 2*n {
				t.Fatalf("%d conditions of %d instances", len(all), n)
			} else {
				passes(all)
			}
		})
		each = testing.AllocsPerRun(3, func() {
			for i := range n {
				passes(c.Conditions(spec.Address{Kind: spec.VM, Name: "web", Key: fmt.Sprintf("n%d", i)}, values))
			}
		})
		return whole, each
	}
	whole, each := work(50)
	manyWhole, manyEach := work(200)
	if manyWhole > 6*whole || manyEach > 6*each {
		t.Errorf("four times the instances take %.0f and %.0f allocations in place of %.0f and %.0f", manyWhole, manyEach, whole, each)
	}
}
