package view

// opWords says what a step does while it runs and once it is done.
type opWords struct{ doing, done string }

var wordsOfOps = map[string]opWords{
	"clear":      {"clearing what is left of the last one", "cleared"},
	"define":     {"defining", "defined"},
	"delete":     {"deleting", "deleted"},
	"forget":     {"forgetting its record", "forgotten"},
	"record":     {"writing its record", "recorded"},
	"recover":    {"recovering", "recovered"},
	"redefine":   {"redefining", "redefined"},
	"unkey":      {"taking the keys out of its seed", "took the keys out of its seed"},
	"settle":     {"settling what an earlier run left", "settled"},
	"start":      {"starting", "started"},
	"stop":       {"stopping", "stopped"},
	"unlock":     {"freeing its disk", "freed"},
	"wait_ready": {"waiting for an answer", "ready"},
	"wait_ssh":   {"waiting for SSH", "ready for SSH"},
}

func wordsOf(op string) opWords {
	if w, ok := wordsOfOps[op]; ok {
		return w
	}
	return opWords{doing: op, done: op + " done"}
}
