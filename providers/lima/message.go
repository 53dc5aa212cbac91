package lima

import (
	"context"
	"strconv"
	"strings"
)

// message returns the lines of the message that a template has for the user, with the values of the instance in it: how
// to reach what it has set up, for example. limactl shows it after a start. A message that cannot be filled in fails
// nothing.
func (j *job) message(ctx context.Context, port uint16) []string {
	said := text(j.seen.doc[keyMessage], "")
	if strings.Contains(said, "{{") {
		var answer struct{ Message string }
		err := j.runTool(ctx, j.want.Accel, nil, &answer, nil, "message", "--ssh-port="+strconv.Itoa(int(port)), j.Name)
		if err != nil {
			return []string{"the message of its template cannot be shown: " + err.Error()}
		}
		said = answer.Message
	}
	said = strings.Trim(said, "\n")
	if said == "" {
		return nil
	}
	lines := []string{"the message of its template:"}
	if len(said) <= messageLimit {
		return append(lines, strings.Split(said, "\n")...)
	}
	said = strings.ToValidUTF8(said[:messageLimit], "")
	return append(append(lines, strings.Split(said, "\n")...), "(the rest of it is left out: it has more than 4 KiB)")
}

// messageLimit is the longest message that is shown whole (bytes).
const messageLimit = 4 << 10
