package screentest

// Crop changes the size of the window as xterm does: lines stay as they are.
func (t *Terminal) Crop(columns, rows int) {
	t.columns = columns
	t.column, t.past = min(t.column, columns-1), false
	t.setRows(rows)
}

// Reflow changes the size of the window as most terminals do: a line that is too long goes on
// in the next one, and the cursor stays at its character.
func (t *Terminal) Reflow(columns, rows int) {
	var all []line
	row, column := 0, 0
	for i := 0; i < len(t.lines); {
		whole, cursor := line{}, -1
		for more := true; more && i < len(t.lines); i++ {
			if i == t.row {
				cursor = len(whole.cells) + t.column
			}
			whole.cells = append(whole.cells, t.lines[i].cells...)
			more = t.lines[i].wraps
		}
		if cursor >= 0 {
			row, column = len(all)+cursor/columns, cursor%columns
		}
		all = append(all, split(whole.cells, columns)...)
	}
	for len(all) <= row {
		all = append(all, line{})
	}
	t.columns, t.lines, t.row, t.column, t.past = columns, all, row, column, false
	t.top = max(0, min(row, len(all)-t.rows))
	t.setRows(rows)
}

func split(cells []cell, columns int) []line {
	var all []line
	for len(cells) > columns {
		n := columns
		if cells[n].text == "" { // the second half of a wide character
			n--
		}
		all = append(all, line{cells: cells[:n:n], wraps: true})
		cells = cells[n:]
	}
	return append(all, line{cells: cells})
}

// setRows changes the number of rows. It first removes rows below the cursor, then lets lines
// scroll out; new rows bring back lines that have scrolled out.
func (t *Terminal) setRows(rows int) {
	t.rows = rows
	last := max(t.top+rows, t.row+1)
	t.lines = t.lines[:min(last, len(t.lines))]
	t.top = max(0, min(t.top, len(t.lines)-rows), t.row-rows+1)
	for len(t.lines) < t.top+rows {
		t.lines = append(t.lines, line{})
	}
}
