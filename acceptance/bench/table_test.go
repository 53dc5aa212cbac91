//go:build linux

// Package bench measures whole runs of vmctl beside Terraform and OpenTofu, on objects that
// cost nothing to make: weightless VMs with a disk each, and as many terraform_data.
package bench_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
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

// BenchmarkTable runs every tool that is installed and prints one table with its ratios. An
// apply of a large world takes minutes: VMCTL_BENCH=large has it, too.
//
//	go test ./acceptance/bench -run '^$' -bench Table -benchtime 1x -v
func BenchmarkTable(b *testing.B) {
	all := tools(b)
	rows := []row{
		rowOf(b, all, "fresh plan, CPU", func(t tool) string { return cpu(median(t.freshPlans(b, blocks, size))) }),
		rowOf(b, all, "apply, wall", func(t tool) string { return wall(t.applied(b, blocks, size)) }),
		rowOf(b, all, "plan of what was applied, CPU", func(t tool) string { return cpu(median(t.plans(b))) }),
		rowOf(b, all, "version, wall", func(t tool) string { return wall(median(t.versions(b))) }),
	}
	rows = append(rows, growth(b, all)...)
	rows = append(rows, row{name: "4,600 mistakes", figures: []string{mistakes(b, all[0])}})
	b.Log("\n" + tableOf(all, rows))
}

// growth measures how much more a world of twice the size costs.
func growth(b *testing.B, all []tool) []row {
	end := 8 * small
	if os.Getenv("VMCTL_BENCH") == "large" {
		end = large
	}
	var rows []row
	for n := small; n <= end; n *= 2 {
		rows = append(rows, rowOf(b, all[:1], fmt.Sprintf("fresh plan of 2 x %d by for_each", n), func(t tool) string {
			got := t.freshPlan(b, forEach, n)
			return fmt.Sprintf("%s, %d MB", cpu(got), got.memory>>20)
		}))
	}
	return rows
}

// mistakes measures a spec of which every line is wrong.
func mistakes(b *testing.B, t tool) string {
	t.write(b, "vmctl {\n  project = \"bench\"\n  id = \"k7m2qd9x4r\"\n}\n"+strings.Repeat("vm \"a\" { memory = \"8G\" }\n", 2300))
	got := t.run(b, false, "plan")
	return fmt.Sprintf("%s, %d lines", wall(got), strings.Count(got.output, "\n"))
}

// row is one line of the table: a figure for each tool.
type row struct {
	name    string
	figures []string
}

func rowOf(b *testing.B, all []tool, name string, measure func(tool) string) row {
	b.Helper()
	r := row{name: name}
	for _, t := range all {
		r.figures = append(r.figures, measure(t))
	}
	return r
}

// tableOf aligns the rows. The last column is the best of the others divided by vmctl's figure.
func tableOf(all []tool, rows []row) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	heads := []string{""}
	for _, t := range all {
		heads = append(heads, t.name)
	}
	fmt.Fprintln(w, strings.Join(append(heads, "ratio"), "\t"))
	for _, r := range rows {
		figures := slices.Clone(r.figures)
		for len(figures) < len(all) {
			figures = append(figures, "")
		}
		fmt.Fprintln(w, strings.Join(append(append([]string{r.name}, figures...), r.ratio()), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err.Error()
	}
	return text.String()
}

// ratio returns the smallest of the others' seconds divided by vmctl's; "": nobody else has
// a figure.
func (r row) ratio() string {
	var others []float64
	for _, f := range r.figures[min(1, len(r.figures)):] {
		if s, err := strconv.ParseFloat(strings.TrimSuffix(f, " s"), 64); err == nil {
			others = append(others, s)
		}
	}
	mine, err := strconv.ParseFloat(strings.TrimSuffix(r.figures[0], " s"), 64)
	if err != nil || mine == 0 || len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", slices.Min(others)/mine)
}

func cpu(c cost) string  { return seconds(c.cpu) }
func wall(c cost) string { return seconds(c.wall) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// median returns the cost of the run in the middle, by its CPU time.
func median(all []cost) cost {
	slices.SortFunc(all, func(a, b cost) int { return cmp.Compare(a.cpu, b.cpu) })
	return all[len(all)/2]
}
