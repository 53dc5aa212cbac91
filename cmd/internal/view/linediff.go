package view

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// lineChange is one line of a difference of two texts: ' ' in both, '-' only before, '+' only after,
// '@' where lines that are in both are left out.
type lineChange struct {
	sign byte
	text string
}

// contextLines is the number of lines in both texts that a difference shows around each change.
const contextLines = 2

// longDiff is the number of lines of a difference after which a plan leaves out the rest, unless it
// is verbose.
const longDiff = 40

// longTexts returns the texts of an edit that is shown line by line: both may be shown, one of them
// has several lines, and the other is a text or nothing.
func longTexts(e providers.Edit) (before, after string, is bool) {
	before, one := shownText(e.Before)
	after, two := shownText(e.After)
	return before, after, one && two && strings.Contains(strings.TrimSuffix(before, "\n")+strings.TrimSuffix(after, "\n"), "\n")
}

func shownText(v cty.Value) (string, bool) {
	switch {
	case v == cty.NilVal:
		return "", true
	case v.IsMarked() || !v.IsKnown():
		return "", false
	case v.IsNull():
		return "", true
	case v.Type() != cty.String:
		return "", false
	default:
		return v.AsString(), true
	}
}

// splitLines returns the lines of a text. A last line without a line end says so.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if !strings.HasSuffix(text, "\n") {
		lines[len(lines)-1] += " (no line end)"
	}
	return lines
}

// diffLines returns the difference of two texts with context, and the numbers of added and removed
// lines.
func diffLines(before, after string) (shown []lineChange, added, removed int) {
	all := compareLines(splitLines(before), splitLines(after))
	near := make([]bool, len(all))
	for i, c := range all {
		switch c.sign {
		case '+':
			added++
		case '-':
			removed++
		default:
			continue
		}
		for j := max(0, i-contextLines); j <= min(len(all)-1, i+contextLines); j++ {
			near[j] = true
		}
	}
	line, hidden := 0, false // line of the text after
	for i, c := range all {
		if c.sign != '-' {
			line++
		}
		switch {
		case !near[i]:
			hidden = true
			continue
		case hidden:
			shown = append(shown, lineChange{'@', fmt.Sprintf("line %d", max(line, 1))})
			hidden = false
		}
		shown = append(shown, c)
	}
	return shown, added, removed
}

// mostCells bounds the table of compareLines: beyond it, all lines between the equal beginnings and
// ends of two texts count as changed.
const mostCells = 4 << 20

// compareLines returns the lines of both texts, those in both once.
func compareLines(before, after []string) []lineChange {
	var all []lineChange
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		all = append(all, lineChange{' ', before[0]})
		before, after = before[1:], after[1:]
	}
	var end []lineChange
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		end = append([]lineChange{{' ', before[len(before)-1]}}, end...)
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	common := commonLines(before, after)
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(before) > 0 && len(after) > 0 && common != nil && before[0] == after[0]:
			all = append(all, lineChange{' ', before[0]})
			before, after, common = before[1:], after[1:], common[1:]
			for i := range common {
				common[i] = common[i][1:]
			}
		case len(before) > 0 && (len(after) == 0 || common == nil || common[1][0] >= common[0][1]):
			all = append(all, lineChange{'-', before[0]})
			before = before[1:]
			if common != nil {
				common = common[1:]
			}
		default:
			all = append(all, lineChange{'+', after[0]})
			after = after[1:]
			for i := range common {
				common[i] = common[i][1:]
			}
		}
	}
	return append(all, end...)
}

// commonLines returns, for each pair of line numbers, the length of the longest list of lines that
// both rests have; nil: there are too many.
func commonLines(before, after []string) [][]int32 {
	if len(before)*len(after) > mostCells {
		return nil
	}
	table := make([][]int32, len(before)+1)
	for i := range table {
		table[i] = make([]int32, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			if before[i] == after[j] {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	return table
}

// diffTitle counts the lines of an edit: `3 lines → 4 lines, 1 added, 0 removed`.
func diffTitle(before, after, arrow string) string {
	_, added, removed := diffLines(before, after)
	return fmt.Sprintf("%s %s %s, %d added, %d removed", lineCount(before), arrow, lineCount(after), added, removed)
}

func lineCount(text string) string {
	if text == "" {
		return "none"
	}
	return plural(len(splitLines(text)), "line")
}

// lineDiff writes the difference of two texts below their row.
func (p *page) lineDiff(before, after string) {
	shown, _, _ := diffLines(before, after)
	for i, c := range shown {
		if p.brief > 0 && i == longDiff {
			p.put(8, 8, in(dim, fmt.Sprintf("and %s more; --verbose shows them", plural(len(shown)-i, "line"))))
			return
		}
		text := Text(strings.ReplaceAll(c.text, "\t", "    "))
		if p.brief > 0 {
			text = cut(text, p.brief)
		}
		look := plain
		switch c.sign {
		case '+':
			look = green
		case '-':
			look = red
		case '@':
			look = dim
		}
		p.put(8, 8, whole(span{look, string(c.sign) + " " + text}))
	}
}
