package providertest

import (
	"vmctl/internal/shellword"
	"vmctl/providers"
)

// Lines returns each advice as a line, as a run without flags shows it.
func Lines(all []providers.Advice) []string {
	var lines []string
	for _, a := range all {
		line := a.Text
		if len(a.Args) > 0 {
			line += "vmctl " + shellword.Join(a.Args)
		}
		lines = append(lines, line)
	}
	return lines
}
