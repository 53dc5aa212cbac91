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
	return append([]string{"the message of its template:"}, strings.Split(said, "\n")...)
}
