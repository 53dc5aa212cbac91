package view

// opWords says what a step does while it runs and once it is done.
type opWords struct{ doing, done string }

var words2op = map[string]opWords{
	"start":  {"starting", "started"},
	"stop":   {"stopping", "stopped"},
	"define": {"defining", "defined"},
	"delete": {"deleting", "deleted"},
}

func wordsOf(op string) opWords {
	if w, ok := words2op[op]; ok {
		return w
	}
	return opWords{doing: op, done: op + " done"}
}
