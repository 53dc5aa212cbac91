package process

import (
	"fmt"
	"strconv"
	"strings"
)

// stat holds fields of the stat file of a process (proc_pid_stat(5)).
type stat struct {
	pid, parent, pgid, threads int
	state                      string
	start                      uint64
}

// ended reports whether nothing runs any more. The first thread of a program may
// have ended before the others.
func (s stat) ended() bool {
	return (s.state == "Z" || s.state == "X" || s.state == "x") && s.threads <= 1
}

// parseStat reads the line of a stat file. The program chooses the second field:
// anything may stand between the first and the last parenthesis.
func parseStat(line string) (stat, error) {
	from, to := strings.Index(line, " ("), strings.LastIndex(line, ") ")
	if from < 0 || to < from {
		return stat{}, fmt.Errorf("no line of a process: %q", line)
	}
	fields := strings.Fields(line[to+2:])
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("a line cut short: %q", line)
	}
	// Fields are counted from 1 in the manual, and the third comes first here.
	numbers := map[int]int{1: 0, 4: 0, 5: 0, 20: 0}
	for field := range numbers {
		text := line[:from]
		if field > 2 {
			text = fields[field-3]
		}
		number, err := strconv.Atoi(text)
		if err != nil {
			return stat{}, fmt.Errorf("field %d: %w", field, err)
		}
		numbers[field] = number
	}
	start, err := strconv.ParseUint(fields[22-3], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("field 22: %w", err)
	}
	return stat{pid: numbers[1], parent: numbers[4], pgid: numbers[5], threads: numbers[20], state: fields[0], start: start}, nil
}
