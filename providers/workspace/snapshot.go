package workspace

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vmctl/internal/gitx"
	"vmctl/providers"
)

// state is a workspace as the program snapshot read it.
type state struct {
	head      string   // the commit that is checked out; "": there is none yet
	headRef   string   // the branch that is checked out, with refs/heads/; "": none
	index     string   // the tree of the index
	files     string   // the tree of the files, unchanged by filters
	digest    string   // of all of this
	entries   []string // of the index, as ls-files --stage has them
	assumed   []string // the files that are marked assume-unchanged
	skipped   []string // the files that are marked skip-worktree
	untracked []string
	ignored   []string
	refs      []reference
	stashes   []stash // the newest first
}

// reference is a reference of a workspace's own git directory.
type reference struct{ sha, sort, name string }

// stash is a stash of a workspace's own git directory.
type stash struct{ sha, message string }

// withIgnored is an argument of snapshot: the tree of the files has the ignored ones, too.
const withIgnored = "-f"

// snapshot reads a workspace whole. Whatever cannot be saved is a *RefusedError.
func (p *Provider) snapshot(ctx context.Context, w *seen, force string) (*state, error) {
	out, err := p.ask(ctx, snapshot, string(w.ID), w.Path, p.tree(), force)
	if err != nil {
		return nil, err
	}
	return parseState(out)
}

// refusal is the status with which a program refuses to do something.
const refusal = 3

// ask runs one of the programs in the place, and returns what it printed. Its refusal is a *RefusedError.
func (p *Provider) ask(ctx context.Context, program string, args ...string) ([]byte, error) {
	g, err := p.settings.Via.Enter(ctx)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	o, err := g.Run(ctx, providers.Command{Args: append([]string{"sh", "-c", program, "workspace"}, args...), Stdout: &out})
	switch {
	case err != nil:
		return nil, err
	case o.Status == refusal:
		return nil, &RefusedError{Why: strings.TrimSpace(o.Stderr)}
	case o.Status != 0:
		return nil, failedInside(o)
	}
	return out.Bytes(), nil
}

func parseState(out []byte) (*state, error) {
	parts := map[string]string{}
	for len(out) > 0 {
		line, rest, _ := bytes.Cut(out, []byte("\n"))
		name, length, _ := strings.Cut(string(line), " ")
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(rest) {
			return nil, fmt.Errorf("read the workspace: %q is not understood", line)
		}
		parts[name], out = string(rest[:n]), rest[n:]
	}
	info := strings.Split(parts["info"], "\n")
	if len(info) < 5 {
		return nil, fmt.Errorf("read the workspace: %q is not understood", parts["info"])
	}
	s := &state{
		head: info[0], headRef: info[1], index: info[2], files: info[3], digest: info[4],
		entries: names(parts["stage"]), untracked: names(parts["untracked"]), ignored: names(parts["ignored"]),
	}
	for _, line := range names(parts["flags"]) {
		tag, name, _ := strings.Cut(line, " ")
		if tag != strings.ToUpper(tag) {
			s.assumed = append(s.assumed, name)
		}
		if strings.EqualFold(tag, "S") {
			s.skipped = append(s.skipped, name)
		}
	}
	for line := range strings.Lines(parts["refs"]) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(f) < 3 {
			return nil, fmt.Errorf("read the workspace: %q is not understood", line)
		}
		s.refs = append(s.refs, reference{sha: f[0], sort: f[1], name: f[2]})
	}
	for line := range strings.Lines(parts["stashes"]) {
		sha, message, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if message == "" {
			message = "stash"
		}
		s.stashes = append(s.stashes, stash{sha: sha, message: message})
	}
	return s, s.sound()
}

// sound fails if a state names something that is no object or no reference of a workspace: it comes from a guest.
func (s *state) sound() error {
	for _, sha := range append(s.commits(), s.index, s.files) {
		if !gitx.IsObjectName(sha) {
			return fmt.Errorf("read the workspace: %.80q is no name of an object", sha)
		}
	}
	for _, r := range s.refs {
		if !isOwnRef(r.name, "refs/heads/", "refs/tags/", "refs/notes/") {
			return fmt.Errorf("read the workspace: %.80q is no name of a branch, a tag or notes", r.name)
		}
	}
	if s.headRef != "" && !isOwnRef(s.headRef, "refs/heads/") {
		return fmt.Errorf("read the workspace: %.80q is no name of a branch", s.headRef)
	}
	return nil
}

// isOwnRef reports whether git accepts a name of a reference, which lies in one of some folders.
func isOwnRef(name string, folders ...string) bool {
	bad := strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) })
	for _, part := range []string{"..", "@{", "//", "/.", ".lock/"} {
		bad = bad || strings.Contains(name+"/", part)
	}
	return !bad && !strings.HasSuffix(name, ".") && !strings.HasSuffix(name, "/") &&
		slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(name, f) && len(name) > len(f) })
}

// names returns texts that each end with a NUL.
func names(text string) []string {
	all := strings.Split(text, "\x00")
	return all[:len(all)-1]
}

// ended returns texts with an end after each.
func ended(all []string, end string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, end) + end
}

// commits returns the commits of a state, sorted.
func (s *state) commits() []string {
	var all []string
	if s.head != "" {
		all = append(all, s.head)
	}
	for _, r := range s.refs {
		all = append(all, r.sha)
	}
	for _, t := range s.stashes {
		all = append(all, t.sha)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
