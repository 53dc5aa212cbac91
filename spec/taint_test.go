package spec_test

import (
	"strings"
	"testing"

	"vmctl/spec"
)

const secretVariables = `
variable "s" {
  type      = string
  sensitive = true
  default   = "canary"
}
variable "n" {
  type      = number
  sensitive = true
  default   = 4711
}
locals {
  table = { canary = 1, public = 2 }
  list  = [1, 2]
  mixed = { a = local.table[var.s], b = 1 }
  pair  = [local.table[var.s], 1]
  users = { alice = { name = "Alice", word = var.s } }
}
`

// What comes from something sensitive is sensitive, whatever operation or function made it. What is public beside it
// stays public.
//
// row A48
func TestSensitiveResults(t *testing.T) {
	for expr, want := range map[string]bool{
		`local.table[var.s]`:                                      true,
		`local.list[var.n - 4711]`:                                true,
		`upper("${local.table[var.s]}")`:                          true,
		`{ a = local.table[var.s], b = local.table["public"] }`:   true,
		`[local.table[var.s], 1]`:                                 true,
		`local.mixed.a`:                                           true,
		`local.mixed.b`:                                           false,
		`local.pair[0]`:                                           true,
		`local.pair[1]`:                                           false,
		`{ "${local.table[var.s]}" = 1 }`:                         true,
		`[for t in [local.table] : t[var.s]]`:                     true,
		`[for s in [var.s] : local.table[s]]`:                     true,
		`merge({ a = local.table[var.s] }, { b = var.s })`:        true,
		`can(var.s.x)`:                                            true,
		`can(var.s)`:                                              true,
		`can(tonumber(var.s))`:                                    true,
		`try(tonumber(var.s), 7)`:                                 true,
		`try(local.table[var.s], 7)`:                              true,
		`try(local.users.alice.gone, "x")`:                        true,
		`[for s in [var.s] : can(tonumber(s))]`:                   true,
		`var.s == null`:                                           true,
		`[var.s] == ["x"]`:                                        true,
		`[for x in ["a"] : x if var.s == "canary"]`:               true,
		`length(var.s)`:                                           true,
		`var.s == "canary" ? 1 : 2`:                               true,
		`"${var.s}"`:                                              true,
		`"%{if var.s == "x"}a%{else}b%{endif}"`:                   true,
		`lookup({ canary = "x" }, var.s, "y")`:                    true,
		`contains(["canary"], var.s)`:                             true,
		`nonsensitive(local.table[var.s])`:                        false,
		`nonsensitive(var.s)`:                                     false,
		`keys(local.users)`:                                       false,
		`local.users.alice.name`:                                  false,
		`local.users["alice"].name`:                               false,
		`try(local.users.alice.name, "x")`:                        false,
		`can(local.users.alice.name)`:                             false,
		`[for k, v in local.users : k]`:                           false,
		`[for k, v in local.users : local.table["public"]]`:       false,
		`[for k, v in { public = local.users } : local.table[k]]`: true, // k may come from a secret
		`[for k in ["public"] : local.table[k]]`:                  false,
		`try(local.table.gone, 1)`:                                false,
	} {
		t.Run(expr, func(t *testing.T) {
			_, diags := load(t, secretVariables+"locals {\n  it = "+expr+"\n}\noutput \"it\" {\n  value = local.it\n}\n")
			got := false
			for _, d := range diags {
				if got = d.Summary == "Sensitive output"; !got {
					t.Fatal(diags)
				}
			}
			if got != want {
				t.Errorf("the result is sensitive: %t, want %t", got, want)
			}
		})
	}
}

// A diagnostic shows no value that may come from something sensitive, and shows what does not.
func TestDiagnosticsShowNothingSensitive(t *testing.T) {
	for expr, want := range map[string]string{
		`{ for i in [1, 2] : upper(var.s) => i }`:                       "",
		`{ for i in [1, 2] : "x-${var.s}" => i }`:                       "",
		`{ for k, v in { (var.s) = 1 } : k => parseint(k, 10) }`:        "",
		`[for str, v in { (var.s) = 1 } : jsondecode(str)]`:             "",
		`[for path, v in { (var.s) = 1 } : file(path)]`:                 "",
		`[for k, v in { (var.s) = 1 } : local.users[upper(k)]]`:         "",
		`var.s == "x" ? { (upper(var.s)) = 1 } : 2`:                     "",
		`local.table["CANARY"] + local.table[upper(var.s)]`:             "",
		`tonumber(upper(var.s))`:                                        "",
		`{ for i in [1, 2] : upper("public") => i }`:                    `"PUBLIC"`,
		`local.users.alice.gone`:                                        `"gone"`,
		`[var.s, parseint("public", 10)][1]`:                            `"public"`,
		`{ a = var.s, b = { for i in [1, 2] : upper("public") => i } }`: `"PUBLIC"`,
	} {
		t.Run(expr, func(t *testing.T) {
			_, diags := load(t, secretVariables+"locals {\n  it = "+expr+"\n}\n")
			if !diags.HasErrors() {
				t.Fatal("there is no mistake")
			}
			got := ""
			for _, d := range diags {
				got += d.Summary + ": " + d.Detail + "\n"
				if want == "" && (d.Expression != nil || d.EvalContext != nil) {
					t.Errorf("the writer can show values: %s", got)
				}
			}
			if strings.Contains(strings.ToLower(got), "canary") || strings.Contains(got, "'c'") {
				t.Errorf("it shows the secret:\n%s", got)
			}
			if !strings.Contains(got, want) {
				t.Errorf("it lacks %s:\n%s", want, got)
			}
		})
	}
}

// The rule holds in templates, too.
func TestSensitiveTemplate(t *testing.T) {
	for template, want := range map[string]bool{"${table[s]}": true, "${table.public}": false} {
		dir := t.TempDir()
		write(t, dir+"/t", []byte(template))
		write(t, dir+"/main.vmctl.hcl", []byte(secretVariables+"output \"it\" {\n  value = templatefile(\"t\", { s = var.s, table = local.table })\n}\n"))
		if _, diags := spec.Load(dir, spec.Inputs{}); diags.HasErrors() != want {
			t.Errorf("%s: the output is refused: %t, want %t: %v", template, !want, want, diags)
		}
	}
}

// Of an attribute that is withheld as a whole, only the secrets are masked in messages.
func TestSecretsOfAMap(t *testing.T) {
	for triggers, want := range map[string]string{
		`{ public = "shown", secret = var.s, number = var.n }`: "4711 canary",
		`{ public = "shown", (var.s) = "shown" }`:              "canary public shown", // hcl marks all of an object with a sensitive key
		`sensitive({ a = "one", b = "two" })`:                  "a b canary one two",
		`merge({ a = "shown" }, { b = "x-${var.s}" })`:         "canary x-canary",
		`{ a = var.s == "canary" ? null : var.s }`:             "canary",
	} {
		c := good(t, secretVariables+"vm \"a\" {\n  boot { kernel = \"kernel\" }\n  restart_triggers = "+triggers+"\n}\n")
		got := strings.Join(c.Secrets(), " ")
		if got != want {
			t.Errorf("%s: the secrets are %q, want %q", triggers, got, want)
		}
		if shown := spec.Withheld(c.Resources[0].Want); spec.Has(shown, "restart_triggers") {
			t.Errorf("%s: the public part of the map is not withheld: %#v", triggers, shown)
		}
	}
}
