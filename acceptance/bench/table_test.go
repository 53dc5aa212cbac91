//go:build linux

// Package bench measures whole runs of vmctl beside Terraform and OpenTofu, on objects that
// cost nothing to make: weightless VMs with a disk each, and as many terraform_data.
package bench_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// Sizes of the worlds, in VMs. Each VM has a disk.
const (
	size  = 1500
	small = 1000
	large = 50_000
)

// rounds is the number of runs of which the median counts.
const rounds = 3

// section measures some rows of the table. The first of the tools is vmctl.
type section func(b *testing.B, all []tool) []row

// sections lists the parts of the table in order. A file that measures something else adds its
// section here.
var sections = []section{plansAndApply, growth, mistakes, versions}

// BenchmarkTable runs vmctl and whichever of Terraform and OpenTofu is installed, and prints one
// table. VMCTL_BENCH=large adds a world of 100,000 resources, which takes minutes.
//
//	go test ./acceptance/bench -run '^$' -bench Table -benchtime 1x
func BenchmarkTable(b *testing.B) {
	all := tools(b)
	var rows []row
	for _, measure := range sections {
		rows = append(rows, measure(b, all)...)
	}
	b.Log("\n" + tableOf(all, rows))
}

// plansAndApply measures a world from its first plan to the plan that finds nothing to do.
func plansAndApply(b *testing.B, all []tool) []row {
	what := fmt.Sprintf("%d VMs, %d disks: ", size, size)
	return []row{
		rowOf(all, what+"fresh plan", "0.46 s, ratio 10", func(t tool) figure { return cpu(median(t.freshPlans(b, blocks, size))) }),
		rowOf(all, what+"apply, elapsed", "", func(t tool) figure { return elapsed(t.applied(b, blocks, size)) }),
		rowOf(all, what+"plan of what was applied", "0.69 s, ratio 10", func(t tool) figure { return cpu(median(t.plans(b))) }),
	}
}

// growth measures how much more a world of twice the size costs.
func growth(b *testing.B, all []tool) []row {
	end, goals := 8*small, map[int]string{}
	if os.Getenv("VMCTL_BENCH") == "large" {
		end, goals[large] = large, "30 s, 1500 MB"
	}
	var rows []row
	before := figure{}
	for n := small; n <= end; n = next(n, end) {
		got := all[0].freshPlan(b, forEach, n)
		f := cpu(got)
		f.text += fmt.Sprintf(", %d MB", got.memory>>20)
		goal := goals[n]
		if before.seconds > 0 && n < large {
			f.text += fmt.Sprintf(", %.2f times the one before", f.seconds/before.seconds)
			goal = "2.2 times"
		}
		rows = append(rows, row{what: fmt.Sprintf("for_each, %d VMs, %d disks: fresh plan", n, n), figures: []figure{f}, goal: goal})
		before = f
	}
	return rows
}

// next returns twice n, and end in place of the first number beyond it.
func next(n, end int) int {
	if n < end && 2*n > end {
		return end
	}
	return 2 * n
}

// mistakes measures a spec of which every line is wrong.
func mistakes(b *testing.B, all []tool) []row {
	const count = 4600
	var text strings.Builder
	text.WriteString("vmctl {\n  project = \"bench\"\n  id = \"k7m2qd9x4r\"\n}\n")
	for i := range count {
		fmt.Fprintf(&text, "vm \"v%d\" { memory = \"8G\" }\n", i)
	}
	all[0].write(b, text.String())
	got := all[0].run(b, false, "plan")
	f := cpu(got)
	f.text += fmt.Sprintf(", %d shown", strings.Count(got.output, "Error: "))
	return []row{{what: fmt.Sprintf("%d mistakes", count), figures: []figure{f}, goal: "2 s, 20 shown"}}
}

func versions(b *testing.B, all []tool) []row {
	return []row{rowOf(all, "version, elapsed", "0.030 s", func(t tool) figure { return elapsed(median(t.versions(b))) })}
}

// row is one line of the table: a figure for each tool, in their order. The last ones may be
// missing.
type row struct {
	what    string
	figures []figure
	goal    string // of vmctl; "": none
}

// figure is a measured value, as text and in seconds.
type figure struct {
	text    string
	seconds float64
}

func rowOf(all []tool, what, goal string, measure func(tool) figure) row {
	r := row{what: what, goal: goal}
	for _, t := range all {
		r.figures = append(r.figures, measure(t))
	}
	return r
}

// tableOf aligns the rows. Seconds are CPU time where a row does not say otherwise. The ratio is
// the best figure of the other tools divided by vmctl's.
func tableOf(all []tool, rows []row) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	heads := []string{"what"}
	for _, t := range all {
		heads = append(heads, t.name)
	}
	fmt.Fprintln(w, strings.Join(append(heads, "ratio", "goal"), "\t"))
	for _, r := range rows {
		cells := []string{r.what}
		for i := range all {
			if i < len(r.figures) {
				cells = append(cells, r.figures[i].text)
			} else {
				cells = append(cells, "")
			}
		}
		fmt.Fprintln(w, strings.Join(append(cells, r.ratio(), r.goal), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err.Error()
	}
	return text.String()
}

// ratio returns the smallest figure of the others divided by vmctl's, "" if nobody else has one.
func (r row) ratio() string {
	if len(r.figures) < 2 || r.figures[0].seconds == 0 {
		return ""
	}
	best := slices.MinFunc(r.figures[1:], func(a, b figure) int { return cmp.Compare(a.seconds, b.seconds) })
	return fmt.Sprintf("%.1f", best.seconds/r.figures[0].seconds)
}

func cpu(c cost) figure     { return inSeconds(c.cpu) }
func elapsed(c cost) figure { return inSeconds(c.elapsed) }

func inSeconds(d time.Duration) figure {
	return figure{text: fmt.Sprintf("%.3f s", d.Seconds()), seconds: d.Seconds()}
}

// median returns the cost of the run in the middle, by its CPU time.
func median(all []cost) cost {
	slices.SortFunc(all, func(a, b cost) int { return cmp.Compare(a.cpu, b.cpu) })
	return all[len(all)/2]
}
