package graph

// colors holds the colors of a box.
type colors struct{ fill, line, text string }

// kindColors holds the colors of each kind of node. Other kinds are purple.
var kindColors = map[string]colors{
	"vm":       {"#e0f2fe", "#0284c7", "#0c4a6e"},
	"disk":     {"#dcfce7", "#16a34a", "#14532d"},
	"provider": {"#f1f5f9", "#94a3b8", "#334155"},

	// the phases of a plan, colored by their effect on the users of the object
	"recover": {"#fef9c3", "#ca8a04", "#713f12"},
	"release": {"#fef9c3", "#ca8a04", "#713f12"},
	"down":    {"#ffedd5", "#ea580c", "#7c2d12"},
	"remove":  {"#fee2e2", "#dc2626", "#7f1d1d"},
	"reserve": {"#f1f5f9", "#94a3b8", "#334155"},
	"make":    {"#dcfce7", "#16a34a", "#14532d"},
	"change":  {"#fef9c3", "#ca8a04", "#713f12"},
	"up":      {"#e0f2fe", "#0284c7", "#0c4a6e"},
	"ready":   {"#e0f2fe", "#0284c7", "#0c4a6e"},
	"resume":  {"#e0f2fe", "#0284c7", "#0c4a6e"},
	"tidy":    {"#f1f5f9", "#94a3b8", "#334155"},
}

func colorsOf(kind string) colors {
	if c, ok := kindColors[kind]; ok {
		return c
	}
	return colors{fill: "#f3e8ff", line: "#9333ea", text: "#581c87"}
}
