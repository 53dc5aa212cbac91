package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"vmctl/spec"
)

// TestVariables reads values from everywhere: --var wins over --var-file, which
// wins over the environment, which wins over the default.
func TestVariables(t *testing.T) {
	for _, c := range []struct{ name, declared, file, environ, given, want string }{
		{"default", `default = "a"`, ``, ``, ``, `cty.StringVal("a")`},
		{"environment", `default = "a"`, ``, `env`, ``, `cty.StringVal("env")`},
		{"file", `default = "a"`, `v = "file"`, `env`, ``, `cty.StringVal("file")`},
		{"command line", `default = "a"`, `v = "file"`, `env`, `cli`, `cty.StringVal("cli")`},
		{"equals sign", ``, ``, ``, `a=b=c`, `cty.StringVal("a=b=c")`},
		{"empty", ``, ``, ``, ` `, `cty.StringVal(" ")`},
		{"number", `type = number`, ``, ``, `42`, `cty.NumberIntVal(42)`},
		{"bool", `type = bool`, ``, `true`, ``, `cty.True`},
		{"quotes stay", `type = string`, ``, ``, `"x"`, `cty.StringVal("\"x\"")`},
		{"list", `type = list(number)`, ``, ``, `[1, "2"]`, `cty.ListVal([]cty.Value{cty.NumberIntVal(1), cty.NumberIntVal(2)})`},
		{"set", `type = set(string)`, `v = ["b", "a", "a"]`, ``, ``, `cty.SetVal([]cty.Value{cty.StringVal("a"), cty.StringVal("b")})`},
		{"map", `type = map(string)`, ``, ``, `{ a = 1 }`, `cty.MapVal(map[string]cty.Value{"a":cty.StringVal("1")})`},
		{
			"optional", `type = object({ a = string, b = optional(number, 2) })`, ``, ``, `{ a = "x" }`,
			`cty.ObjectVal(map[string]cty.Value{"a":cty.StringVal("x"), "b":cty.NumberIntVal(2)})`,
		},
		{"any", `type = any`, `v = [1, "a"]`, ``, ``, `cty.TupleVal([]cty.Value{cty.NumberIntVal(1), cty.StringVal("a")})`},
		{"null", `default = "a"`, `v = null`, ``, ``, `cty.NullVal(cty.DynamicPseudoType)`},
		{"null is the default", "default = \"a\"\n  nullable = false", `v = null`, ``, ``, `cty.StringVal("a")`},
		{"rule", "validation {\n  condition = var.v != \"\"\n  error_message = \"never\"\n}", ``, `x`, ``, `cty.StringVal("x")`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/main.vmctl.hcl", []byte("variable \"v\" {\n  "+c.declared+"\n}\noutput \"o\" {\n  value = var.v\n}\n"))
			var in spec.Inputs
			if c.file != "" {
				write(t, dir+"/vars.hcl", []byte(c.file+"\n"))
				in.VarFiles = []string{dir + "/vars.hcl"}
			}
			if c.environ != "" {
				in.Environ = []string{"PATH=/bin", "VMCTL_VAR_v=" + c.environ, "VMCTL_VAR_other=x", "VMCTL_VAR_"}
			}
			if c.given != "" {
				in.Vars = []string{"v=first", "v=" + c.given}
			}
			config, diags := spec.Load(dir, in)
			if diags.HasErrors() {
				t.Fatal(render(t, config, diags))
			}
			outputs, diags := config.Outputs(nil)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if got := fmt.Sprintf("%#v", outputs[0].Value); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Values that are no text would become equal, and so would their digests.
func TestVariableThatIsNoText(t *testing.T) {
	for _, declared := range []string{"", "sensitive = true", "type = list(string)"} {
		dir := t.TempDir()
		write(t, dir+"/main.vmctl.hcl", []byte("variable \"v\" {\n  "+declared+"\n}\n"))
		_, diags := spec.Load(dir, spec.Inputs{Environ: []string{"VMCTL_VAR_v=canary\xff"}})
		if text := fmt.Sprint(diags); !strings.Contains(text, "`VMCTL_VAR_v`, is not UTF-8 text") || strings.Contains(text, "canary") {
			t.Errorf("%s: %v", declared, diags)
		}
	}
}

// A sensitive variable without a value is not to be given on the command line.
func TestMissingSensitiveVariable(t *testing.T) {
	for declared, want := range map[string]string{"": "Set one with `--var v=…`", "sensitive = true": "set it as `VMCTL_VAR_v` in the environment"} {
		_, diags := load(t, "variable \"v\" {\n  "+declared+"\n}\n")
		if text := fmt.Sprint(diags); !strings.Contains(text, want) || declared != "" && strings.Contains(text, "--var v") {
			t.Errorf("%q: %v, want %s", declared, diags, want)
		}
	}
}

func TestRequiredVersion(t *testing.T) {
	for _, c := range []struct {
		constraint, version string
		good                bool
	}{
		{">= 0.1.0", "0.1.0", true},
		{">= 0.1.0", "v0.1.0", true},
		{">= 0.1", "0.2.0-rc1+abc", true},
		{">= 0.2", "0.1.9", false},
		{"> 0.1.0", "0.1.0", false},
		{"< 1", "0.9", true},
		{"<= 0.9.0", "0.9.1", false},
		{"= 1.2.3", "1.2.3", true},
		{"1.2.3", "1.2.4", false},
		{"!= 1.2.3", "1.2.3", false},
		{"~> 1.2", "1.9.0", true},
		{"~> 1.2", "2.0.0", false},
		{"~> 1.2.3", "1.2.9", true},
		{"~> 1.2.3", "1.3.0", false},
		{"~> 1", "1.5.0", true},
		{"~> 1", "2.0.0", false},
		{">= 1, < 2, != 1.5.0", "1.5.0", false},
		{">= 9", "dev", true}, // a build without a version
		{">= 9", "", true},
		{"", "1.0.0", false},
		{"latest", "", false},
		{">= 1.2.3.4", "2.0.0", false},
	} {
		dir := t.TempDir()
		write(t, dir+"/main.vmctl.hcl", []byte("vmctl {\n  required_version = \""+c.constraint+"\"\n}\n"))
		_, diags := spec.Load(dir, spec.Inputs{Version: c.version})
		if diags.HasErrors() == c.good {
			t.Errorf("%q with version %q: %v", c.constraint, c.version, diags)
		}
		if !c.good && !strings.Contains(diags.Error(), "Unsuitable version") {
			t.Errorf("%q with version %q: %v", c.constraint, c.version, diags)
		}
	}
}

func TestProviderTypes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/main.vmctl.hcl", []byte("provider \"libvirt\" \"a\" {}\nvm \"a\" {}\n"))
	_, diags := spec.Load(dir, spec.Inputs{ProviderTypes: []string{}})
	var got []string
	for _, d := range diags {
		got = append(got, d.Detail)
	}
	const want = `This build of vmctl has no provider of type "libvirt".
` + "`vm.a`" + ` names no provider, and this build of vmctl has none of type "libvirt".`
	if strings.Join(got, "\n") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n"), want)
	}
}
