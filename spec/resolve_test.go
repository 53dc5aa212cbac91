package spec_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

func vm(name string) spec.Address { return spec.Address{Kind: spec.VM, Name: name} }

// record returns the recorded values of a machine.
func record(address string) cty.Value {
	return cty.ObjectVal(map[string]cty.Value{
		"id":       cty.StringVal("id of " + address),
		"name":     cty.StringVal("project." + address),
		"address":  cty.StringVal(address),
		"ssh_port": cty.NumberIntVal(2222),
		"ports":    cty.ObjectVal(map[string]cty.Value{"80": cty.NumberIntVal(8080)}),
		"memory":   cty.NumberIntVal(1), // as it was applied; the spec decides
		"other":    cty.True,
	})
}

const chain = `
vm "a" {
  memory = "1GiB"
}
locals {
  line = "a=${vm.a.address}:${vm.a.ssh_port}/${vm.a.ports["80"]} ${vm.a.memory} ${vm.a.name}"
}
vm "b" {
  boot {
    kernel  = "kernel"
    cmdline = local.line
  }
}
vm "c" {
  for_each = { one = vm.b.boot.cmdline, two = "fixed" }
  boot {
    kernel  = "kernel"
    cmdline = "${each.key} ${each.value}"
  }
}
output "line" {
  value = "${local.line} ${vm.c["one"].boot.cmdline}"
}
output "known" {
  value = vm.a.memory
}
`

func TestResolve(t *testing.T) {
	c := good(t, chain)
	one := spec.Address{Kind: spec.VM, Name: "c", Key: "one"}
	if r, _ := c.Resource(one); r.Want.IsWhollyKnown() {
		t.Fatalf("%s is known before anything exists: %#v", one, r.Want)
	}
	r, diags := c.Resolve(one, map[spec.Address]cty.Value{vm("a"): record("10.0.0.1")})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	const want = "one a=10.0.0.1:2222/8080 1GiB project.10.0.0.1"
	if got := r.Want.GetAttr("boot").GetAttr("cmdline"); !got.RawEquals(cty.StringVal(want)) {
		t.Errorf("got %#v\nwant %s", got, want)
	}
	if !r.Want.IsWhollyKnown() || r.Address != one || fmt.Sprint(r.Uses) != "[vm.b]" {
		t.Errorf("got %v uses %v %#v", r.Address, r.Uses, r.Want)
	}
	again, _ := c.Resource(one)
	if again.Want.IsWhollyKnown() {
		t.Error("resolving has changed the Config")
	}
}

func TestResolveUnknown(t *testing.T) {
	c := good(t, chain)
	r, diags := c.Resolve(vm("b"), nil)
	if diags.HasErrors() || r.Want.GetAttr("boot").GetAttr("cmdline").IsKnown() {
		t.Errorf("without values: %#v, %v", r.Want, diags)
	}
	_, diags = c.Resolve(vm("c"), nil)
	if got := diags.Error(); !strings.Contains(got, "`vm.c` is not in the spec.") {
		t.Errorf("of a whole for_each: %s", got)
	}
	null := map[spec.Address]cty.Value{vm("a"): cty.ObjectVal(map[string]cty.Value{
		"address": cty.StringVal("here"), "ssh_port": cty.NullVal(cty.Number),
	})}
	_, diags = c.Resolve(vm("b"), null)
	if !diags.HasErrors() || !strings.Contains(diags.Error(), "The expression result is null") {
		t.Errorf("with a null port in a text: %v", diags)
	}
}

func TestOutputs(t *testing.T) {
	c := good(t, chain)
	outputs, diags := c.Outputs(map[spec.Address]cty.Value{vm("a"): record("10.0.0.1")})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var got []string
	for _, o := range outputs {
		got = append(got, fmt.Sprintf("%s %#v %t", o.Name, o.Value, o.Sensitive))
	}
	const want = `known cty.StringVal("1GiB") false
line cty.StringVal("a=10.0.0.1:2222/8080 1GiB project.10.0.0.1 one a=10.0.0.1:2222/8080 1GiB project.10.0.0.1") false`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// Executors resolve steps that run side by side.
func TestResolveConcurrently(t *testing.T) {
	c := good(t, chain)
	values := map[spec.Address]cty.Value{vm("a"): record("10.0.0.1")}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, r := range c.Resources {
				if got, diags := c.Resolve(r.Address, values); diags.HasErrors() || !got.Want.IsWhollyKnown() {
					t.Errorf("%s: %v", r.Address, diags)
				}
			}
			if _, diags := c.Outputs(values); diags.HasErrors() {
				t.Error(diags)
			}
		})
	}
	wg.Wait()
}

func TestSensitiveOutputs(t *testing.T) {
	c := good(t, `
variable "secret" {
  default   = "hunter2"
  sensitive = true
}
output "token" {
  value     = { a = [upper(var.secret)] }
  sensitive = true
}
output "bare" {
  value = nonsensitive(var.secret)
}
`)
	outputs, diags := c.Outputs(nil)
	if diags.HasErrors() || len(outputs) != 2 {
		t.Fatalf("%v %v", outputs, diags)
	}
	if o := outputs[1]; o.Value.ContainsMarked() || !o.Sensitive || !strings.Contains(o.Value.GoString(), "HUNTER2") {
		t.Errorf("got %#v", o)
	}
	if o := outputs[0]; o.Sensitive {
		t.Errorf("got %#v", o)
	}
}

// Thousands of machines, each of which needs the one before, load without
// growing slow or deep, and the last resolves from its neighbour alone.
func TestLongChain(t *testing.T) {
	const length = 3000
	var b strings.Builder
	b.WriteString("vm \"v0\" {}\n")
	for i := 1; i < length; i++ {
		fmt.Fprintf(&b, "vm \"v%d\" {\n  cpus = vm.v%d.cpus\n  boot {\n    kernel = \"kernel\"\n    cmdline = local.l%d\n  }\n}\n", i, i-1, i-1)
		fmt.Fprintf(&b, "locals {\n  l%d = vm.v%d.address\n}\n", i-1, i-1)
	}
	c := good(t, b.String())
	last := vm(fmt.Sprintf("v%d", length-1))
	before := vm(fmt.Sprintf("v%d", length-2))
	r, diags := c.Resolve(last, map[spec.Address]cty.Value{before: record("10.0.0.1")})
	if diags.HasErrors() || !r.Want.IsWhollyKnown() || fmt.Sprint(r.Uses) != "["+before.String()+"]" {
		t.Errorf("uses %v, %v: %#v", r.Uses, diags, r.Want)
	}
}

func TestLongCycle(t *testing.T) {
	const length = 3000
	var b strings.Builder
	b.WriteString("locals {\n")
	for i := range length {
		fmt.Fprintf(&b, "  l%d = local.l%d\n", i, (i+1)%length)
	}
	b.WriteString("}\n")
	_, diags := load(t, b.String())
	if len(diags) != 1 || !strings.Contains(diags[0].Detail, "and 2980 more") {
		t.Errorf("got %v", diags)
	}
}

// A Config that was not loaded has nothing, and does not panic.
func TestZeroConfig(t *testing.T) {
	var c spec.Config
	if files := c.Files(); files != nil {
		t.Errorf("files %v", files)
	}
	if outputs, diags := c.Outputs(nil); outputs != nil || diags != nil {
		t.Errorf("outputs %v, %v", outputs, diags)
	}
	if _, diags := c.Resolve(vm("a"), nil); !strings.Contains(diags.Error(), "`vm.a` is not in the spec.") {
		t.Errorf("resolve: %v", diags)
	}
}

// A result of a function on a secret is secret in every part.
func TestSecretsStaySecret(t *testing.T) {
	const secret = "hunter2"
	for _, expr := range []string{
		`[for s in split(",", var.a) : tonumber(s)]`,
		`[for s in jsondecode("[\"${var.a}\"]") : tonumber(s)]`,
		`[for s in values(merge({ a = var.a }, { b = "x" })) : tonumber(s)]`,
		`[for s in var.b : { x = s }][0].x.y`,
		`[for k, v in zipmap([var.a], [1]) : tonumber(k)]`,
		`{ for s in [var.a, var.a] : s => 1 }`,
		`[for s in flatten([[var.a]]) : parseint(s, 10)]`,
		`[for s in (length(var.a) > 1 ? split(",", var.a) : []) : regex("^x", s)]`,
		`[for s in split("-", var.d) : tonumber(s)]`,
		`[for o in [{ x = split("-", var.d) }] : [for s in o.x : s.y]]`,
		`file(var.a)`,
		`templatefile("kernel", { a = tonumber(var.a) })`,
		`format("%d", var.a)`,
		`formatdate(var.a, var.a)`,
		`jsondecode(var.a)`,
		`var.c.x[var.a]`,
		`var.c[var.a]`,
		`lookup({ a = 1 }, var.a)`,
		`tobool(var.a)`,
		`-var.a`,
		`"x${var.b}"`,
		`one([for s in var.b : s])[0].x`,
		`csvdecode("${var.a},${var.a}\n1,2")`,
	} {
		src := fmt.Sprintf(`
variable "a" {
  sensitive = true
}
variable "b" {
  type      = list(string)
  sensitive = true
}
variable "d" {
  sensitive = true
}
variable "c" {
  type      = any
  default   = { x = {} }
  sensitive = true
}
output "o" {
  value     = %s
  sensitive = true
}
`, expr)
		dir := t.TempDir()
		write(t, dir+"/main.vmctl.hcl", []byte(src))
		write(t, dir+"/kernel", []byte("${a}"))
		c, diags := spec.Load(dir, spec.Inputs{Vars: []string{"a=" + secret, "d=" + secret + "-x", `b=["` + secret + `", "` + secret + `"]`}})
		text := render(t, c, diags)
		if !diags.HasErrors() || strings.Contains(text, secret) {
			t.Errorf("%s\n%s", expr, text)
		}
	}
}
