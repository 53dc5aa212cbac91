package tools_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// kindName matches a kind of resource by its name in package spec.
var kindName = regexp.MustCompile(`\bspec\.(VM|Disk|Network|Workspace|Job|Engine|Image|Volume|Container)\b`)

// What differs between kinds stands in the tables of the planner: its other files, and those of the executor, name none.
func TestPlannerNamesNoKinds(t *testing.T) {
	read := 0
	for _, file := range goFiles(t) {
		dir, name := filepath.Base(filepath.Dir(file)), filepath.Base(file)
		if dir != "planner" && dir != "executor" || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "table.go") {
			continue
		}
		read++
		for i, line := range strings.Split(readFile(t, file), "\n") {
			if kindName.MatchString(line) {
				t.Errorf("%s:%d names a kind, and no table does: %s", file, i+1, strings.TrimSpace(line))
			}
		}
	}
	if read < 50 {
		t.Errorf("only %d files were read", read)
	}
}
