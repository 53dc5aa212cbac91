package spec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// TestFunctions evaluates expressions; each line is an expression and its value
// as another.
func TestFunctions(t *testing.T) {
	const table = `
abs(-2) == 2
alltrue([true, true]) == true
alltrue([]) == true
anytrue([false]) == false
anytrue([false, true]) == true
base64decode(base64encode("x")) == "x"
can(tonumber("x")) == false
can(tonumber("1")) == true
ceil(1.2) == 2
chomp("a\n") == "a"
chunklist([1, 2, 3], 2)[1] == tolist([3])
coalesce(null, "", "a") == ""
coalesce(null, "a") == "a"
coalescelist([], ["a"])[0] == "a"
compact(["a", "", "b"]) == tolist(["a", "b"])
concat([1], [2]) == [1, 2]
contains(["a"], "a") == true
csvdecode("a,b\n1,2")[0].b == "2"
distinct([1, 1]) == tolist([1])
element(["a", "b"], 3) == "b"
endswith("abc", "bc") == true
fileexists("kernel") == true
fileexists("no/kernel") == false
file("kernel") == "a kernel"
filesha256("kernel") == sha256("a kernel")
flatten([[1], [[2]]]) == [1, 2]
floor(1.8) == 1
format("%s-%03d", "a", 7) == "a-007"
format("%9999s|", "") == "${join("", [for i in range(1000) : "         "])}${join("", [for i in range(999) : " "])}|"
formatdate("YYYY", "2024-01-02T00:00:00Z") == "2024"
formatlist("%s!", ["a", "b"]) == tolist(["a!", "b!"])
indent(2, "a\nb") == "a\n  b"
index(["a", "b"], "b") == 1
join("-", ["a", "b"]) == "a-b"
jsondecode("{\"a\":[1]}").a[0] == 1
jsonencode({ a = [1, null] }) == "{\"a\":[1,null]}"
keys({ b = 1, a = 2 }) == ["a", "b"]
length("äb") == 2
length([1, 2]) == 2
length({ a = 1 }) == 1
length(toset([])) == 0
log(100, 10) == 2
lookup({ a = 1 }, "b", 3) == 3
lower("A") == "a"
max(1, 3, 2) == 3
merge({ a = 1 }, { a = 2, b = 3 }).a == 2
min(1, 2) == 1
nonsensitive(sensitive("a")) == "a"
one(["a"]) == "a"
one([]) == null
parseint("ff", 16) == 255
pow(2, 3) == 8
range(3) == tolist([0, 1, 2])
regex("[0-9]+", "a12") == "12"
length(regexall("a", "aa")) == 2
replace("a.b", ".", "-") == "a-b"
replace("a12", "/[0-9]+/", "-") == "a-"
reverse([1, 2]) == [2, 1]
setintersection(["a", "b"], ["b"]) == toset(["b"])
length(setproduct(["a", "b"], ["c"])) == 2
setsubtract(["a", "b"], ["b"]) == toset(["a"])
setunion(["a"], ["b"]) == toset(["a", "b"])
signum(-3) == -1
slice([1, 2, 3], 1, 2) == [2]
sort(["b", "a"]) == tolist(["a", "b"])
split(",", "a,b") == tolist(["a", "b"])
startswith("abc", "ab") == true
strcontains("abc", "b") == true
strrev("ab") == "ba"
substr("abc", 1, 1) == "b"
sum([1, 2.5]) == 3.5
templatefile("kernel", {}) == "a kernel"
title("a b") == "A B"
tobool("true") == true
tolist(["a"])[0] == "a"
tomap({ a = 1 })["a"] == 1
tonumber("1") == 1
toset(["a", "a"]) == toset(["a"])
tostring(1) == "1"
trim("xax", "x") == "a"
trimprefix("ab", "a") == "b"
trimspace(" a ") == "a"
trimsuffix("ab", "b") == "a"
try(tonumber("x"), "b") == "b"
try(local.nothing_at_all.x, {}.y, "c") == "c"
upper("a") == "A"
values({ a = 1 }) == [1]
zipmap(["a"], [1]).a == 1
`
	var b strings.Builder
	lines := strings.Split(strings.TrimSpace(table), "\n")
	b.WriteString("locals {\n  nothing_at_all = null\n}\n")
	for i, line := range lines {
		fmt.Fprintf(&b, "output \"o%d\" {\n  value = %s\n}\n", i, line)
	}
	outputs, diags := good(t, b.String()).Outputs(nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, o := range outputs {
		var i int
		if _, err := fmt.Sscanf(o.Name, "o%d", &i); err != nil {
			t.Fatal(err)
		}
		if !o.Value.RawEquals(cty.True) {
			t.Errorf("%s: %#v", lines[i], o.Value)
		}
	}
}

// A function of an unknown value is unknown, and keeps its type.
func TestFunctionsOfTheUnknown(t *testing.T) {
	c := good(t, `
vm "a" {}
output "o" {
  value = {
    upper    = upper(vm.a.address)
    length   = length(vm.a.ports)
    template = templatefile("kernel", { a = vm.a.address })
    one      = one([vm.a.address])
    sum      = sum([1, vm.a.ssh_port])
    any      = anytrue([vm.a.ssh_port == 1])
    try      = try(vm.a.address, "x")
    hidden   = sensitive(vm.a.address)
    json     = jsonencode({ a = vm.a.address })
  }
  sensitive = true
}
`)
	outputs, diags := c.Outputs(nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for name, v := range outputs[0].Value.AsValueMap() {
		if v.IsKnown() && name != "template" {
			t.Errorf("%s is %#v", name, v)
		}
	}
	if _, diags := c.Outputs(map[spec.Address]cty.Value{vm("a"): record("x")}); diags.HasErrors() {
		t.Error(diags)
	}
}

func TestDoubling(t *testing.T) {
	for _, form := range []string{`"${local.l%d}${local.l%d}"`, `[local.l%d, local.l%d]`, `{ a = local.l%d, b = local.l%d }`} {
		var b strings.Builder
		b.WriteString("locals {\n  l0 = \"more and more\"\n")
		for i := range 60 {
			fmt.Fprintf(&b, "  l%d = "+form+"\n", i+1, i, i)
		}
		_, diags := load(t, b.String()+"}\n")
		if len(diags) != 1 || diags[0].Summary != "Value too large" {
			t.Errorf("%s: %v", form, diags)
		}
	}
}
