package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"vmctl/providers"
)

// record holds the facts about a workspace that its folder keeps.
type record struct {
	ID         providers.ID
	Name       string
	Repo       string // as the spec names it
	Repository string // the repository of this host, absolute, without symbolic links
	Branch     string
	Path       string
	Base       string          // the commit from which it was made
	Env        string          // a digest of its environment
	Owner      *providers.Mark `json:",omitempty"`
	Seal       string          `json:",omitempty"` // of a record in a guest: it shows that this host wrote all of the above
}

// The words of a record's third line: whether the git directory is the workspace's own, or one that the repository of
// this host shares with a worktree.
const (
	ownTree    = "own"
	sharedTree = "shared"
)

// text returns a record as its file has it: JSON for vmctl, then two lines for the shell.
func (r record) text(tree string) ([]byte, error) {
	if strings.ContainsAny(r.Path, "\n\x00") {
		return nil, errors.New("its path has a line end in it")
	}
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s\n%s\n%s\n", line, r.Path, tree), nil
}
