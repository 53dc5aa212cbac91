package libvirt

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"vmctl/providers"
)

// clearRemains removes the files of an earlier domain of the name, which is gone. It fails if
// it cannot remove them: nothing is made beside them.
func (j *job) clearRemains(ctx context.Context) ([]string, error) {
	j.storage.Lock()
	defer j.storage.Unlock()
	var all []string
	for _, name := range j.candidatePools() {
		if err := j.rootIsFree(ctx, name); err != nil {
			return nil, err
		}
		removed, err := j.removeVolumes(ctx, name, nil)
		if err != nil {
			f := fail(err, "define %s: remove what an earlier one left", j.Address)
			f.Next = slices.Concat(
				providers.Say("see what is there: virsh -c "+j.location.URI+" vol-list "+name),
				providers.SayVmctl("make the folder of the pool writable, then: ", "apply"),
			)
			return nil, f
		}
		all = append(all, removed...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return []string{"removed what an earlier one left: " + strings.Join(all, ", ")}, nil
}

// undo removes the files of a failed attempt, unless a domain uses them, and returns the
// failure.
func (j *job) undo(ctx context.Context, cause error) (f *providers.Problem, undone bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	f = asFailure(cause, "define "+j.Name)
	if _, err := j.Domain(ctx, string(j.Object)); !errors.Is(err, errAbsent) {
		return f, false
	}
	_, err := j.removeFiles(ctx, j.candidatePools())
	f.Seen = append(f.Seen, staysBehind(err)...)
	return f, true
}

func staysBehind(err error) []string {
	if err == nil {
		return nil
	}
	return []string{"what was made so far stays behind: " + err.Error()}
}
