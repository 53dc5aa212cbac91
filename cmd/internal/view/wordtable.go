package view

// opWords holds the words for a step that runs, and for one that is done.
type opWords struct{ doing, done string }

var wordsOfOps = map[string]opWords{
	"clear":      {"clearing what is left of the last one", "cleared"},
	"define":     {"defining", "defined"},
	"delete":     {"deleting", "deleted"},
	"detach":     {"detaching", "detached"},
	"unmark":     {"taking its mark off", "let go of"},
	"flush":      {"letting go of it", "let go of"},
	"forget":     {"forgetting its record", "forgotten"},
	"grow":       {"growing", "grown"},
	"record":     {"writing its record", "recorded"},
	"recover":    {"recovering", "recovered"},
	"redefine":   {"redefining", "redefined"},
	"remove":     {"removing", "removed"},
	"unkey":      {"taking the keys out of its seed", "took the keys out of its seed"},
	"settle":     {"settling what an earlier run left", "settled"},
	"start":      {"starting", "started"},
	"stop":       {"stopping", "stopped"},
	"unlock":     {"freeing the disk", "freed"},
	"upload":     {"uploading its image", "image uploaded"},
	"wait_ready": {"waiting for an answer", "ready"},
	"wait_ssh":   {"waiting for SSH", "ready for SSH"},
	"write":      {"writing", "written"},
}

func wordsOf(op string) opWords {
	if w, ok := wordsOfOps[op]; ok {
		return w
	}
	return opWords{doing: op, done: op + " done"}
}
