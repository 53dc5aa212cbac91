package spec

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// unsuitableVersion is the summary of the mistake that the spec wants another version of vmctl.
const unsuitableVersion = "Unsuitable version"

// CheckProject fails if name cannot be a project's: one to 31 small letters, digits and hyphens,
// a hyphen not first.
func CheckProject(name string) error {
	if !projectPattern.MatchString(name) {
		return fmt.Errorf("%q is not a project name: write 1 to 31 lower-case letters, digits and hyphens, and no hyphen first", shorten(name))
	}
	return nil
}

// CheckID fails if id cannot be a project's: ten small letters and digits.
func CheckID(id string) error {
	if !idPattern.MatchString(id) {
		return fmt.Errorf("%q is not a project id: `vmctl init` writes one, 10 lower-case letters and digits", shorten(id))
	}
	return nil
}

// settings decodes the vmctl block.
func (l *loader) settings(d *declarations) Settings {
	body, rng := (*hclsyntax.Body)(nil), hcl.Range{}
	if d.settings != nil {
		body, rng = d.settings.Body, d.settings.DefRange()
	}
	dec := &decoder{ctx: emptyContext(), owner: "vmctl", origin: "default of vmctl", invalid: map[hclsyntax.Expression]bool{}}
	l.refuseReferences(dec.invalid, body, vmctlShape)
	v := dec.block(body, vmctlShape, location{rng: rng})
	l.diags = append(l.diags, dec.diags...)
	s := Settings{
		Project: text(v.GetAttr("project")),
		ID:      text(v.GetAttr("id")),
		Range:   rng,
	}
	refresh := v.GetAttr("refresh")
	s.LockTimeout, s.ReadTimeout = timeOf(v.GetAttr("state").GetAttr("lock_timeout")), timeOf(refresh.GetAttr("timeout"))
	s.SkipsUnread = text(refresh.GetAttr("on_unknown")) == SkipUnknown
	if d.settings != nil {
		l.checkSettings(d.settings.Body, v, s)
	}
	return s
}

func (l *loader) checkSettings(body *hclsyntax.Body, v cty.Value, s Settings) {
	check := func(attr, summary string, err error) {
		if v := v.GetAttr(attr); err != nil && v.IsKnown() && !v.IsNull() {
			l.diags = append(l.diags, mistake(body.Attributes[attr].Expr.Range(), summary, "%s.", upperFirst(err.Error())))
		}
	}
	check("project", "Invalid project", CheckProject(s.Project))
	check("id", "Invalid id", CheckID(s.ID))
	check("required_version", unsuitableVersion, checkVersion(text(v.GetAttr("required_version")), l.in.Version))
	if id := v.GetAttr("id"); s.ID != "" && v.GetAttr("project").IsNull() {
		l.diags = append(l.diags, mistake(body.Attributes["id"].NameRange, "Missing project",
			"`vmctl` has an `id` but no `project`: add `project = \"NAME\"` next to id %q.", id.AsString()))
	}
}

// refuseReferences reports references where there must be none, and marks the
// expressions that hold them.
func (l *loader) refuseReferences(bad map[hclsyntax.Expression]bool, body *hclsyntax.Body, shape Block) {
	if body == nil {
		return
	}
	for _, expr := range expressions(body, shape) {
		if vars := hclsyntax.Variables(expr); len(vars) > 0 {
			bad[expr] = true
			l.diags = append(l.diags, mistake(vars[0].SourceRange(), "Unexpected reference",
				"Write a literal value: vmctl reads it before it evaluates any expression."))
		}
	}
}

// timeOf returns a number of seconds, 0 if it is null or unknown.
func timeOf(v cty.Value) time.Duration {
	if v.IsNull() || !v.IsKnown() {
		return 0
	}
	seconds, _ := v.AsBigFloat().Int64()
	return time.Duration(seconds) * time.Second
}

// text returns a string value, "" if it is null or unknown.
func text(v cty.Value) string {
	if v.IsNull() || !v.IsKnown() {
		return ""
	}
	return v.AsString()
}

// checkVersion fails if a version of vmctl does not meet a constraint like ">= 0.1, < 2". A build
// without a version meets every one.
func checkVersion(constraint, version string) error {
	have, hasVersion := parseVersion(version)
	for part := range strings.SplitSeq(constraint, ",") {
		m := constraintPattern.FindStringSubmatch(part)
		if m == nil {
			return fmt.Errorf("%q is not a version constraint: write for example %q", shorten(constraint), ">= 0.1.0")
		}
		want, _ := parseVersion(m[2])
		if hasVersion && !meets(have, m[1], want, strings.Count(m[2], ".")) {
			return fmt.Errorf("this is vmctl %s, and the spec requires %q: install a matching version, or change `required_version`", version, constraint)
		}
	}
	return nil
}

func parseVersion(text string) ([3]int, bool) {
	var v [3]int
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return v, false
	}
	for i := range v {
		if m[i+1] != "" {
			// The pattern admits nothing that does not fit.
			v[i], _ = strconv.Atoi(m[i+1]) //nolint:errcheck // see above
		}
	}
	return v, true
}

// meets compares versions; dots counts the parts that the constraint wrote.
func meets(have [3]int, op string, want [3]int, dots int) bool {
	c := compareVersions(have, want)
	switch op {
	case "", "=":
		return c == 0
	case "!=":
		return c != 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case "~>":
		next := want
		last := max(dots-1, 0)
		next[last]++
		for i := last + 1; i < len(next); i++ {
			next[i] = 0
		}
		return c >= 0 && compareVersions(have, next) < 0
	default:
		panic("spec: unknown operator " + op)
	}
}

func compareVersions(a, b [3]int) int {
	for i := range a {
		if a[i] != b[i] {
			if a[i] < b[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
