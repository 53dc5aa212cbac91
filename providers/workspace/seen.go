package workspace

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vmctl/internal/gitx"
	"vmctl/internal/mountinfo"
	"vmctl/internal/sshfs"
)

// seen is a workspace as it was found.
type seen struct {
	record
	Folder   string // the one that its record is in
	Unsealed string // why its record is not followed; "": it is
	Hooks    map[string]ran
	Head     string
	Tip      string   // the commit of its branch; "": it has none
	Tips     []string // the commits of its branches, tags and notes
	Known    []string // the commits that this host had when they were last exchanged
	Stashes  []string
	Staged, Unstaged, Untracked,
	Unfetched []string
	Hidden     []string   // the files that changed, and have a mark with which git status leaves them out
	Inside     []string   // the repositories in its folder
	Operations []string   // of git, that are not completed
	Copies     []string   // the jobs that have copies of it in the VM
	At         string     // its folder without symbolic links; "": nothing is mounted in it
	Within     []string   // where something is mounted in its folder, but for folders that sshfs serves
	Restoring  string     // the commit of the save that is to be brought back; "": there is none
	Half       string     // why it is only half there; "": it is whole
	Unread     []string   // what could not be read
	Mount      *mounted   // on this host; nil: it is not mounted
	Note       *mountNote // of this host about its mount; nil: there is none
}

// parseList reads what the program list printed.
func parseList(text string) ([]*seen, error) {
	var all []*seen
	var w *seen
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		tag, rest, _ := strings.Cut(line, " ")
		if tag != "W" && w == nil {
			return nil, fmt.Errorf("read the workspaces: %q belongs to none", line)
		}
		if sha, _, _ := strings.Cut(rest, " "); (tag == "H" || tag == "S" || tag == "R" || tag == "B") && !gitx.IsObjectName(sha) {
			w.Unread = append(w.Unread, line) // git would take it for something else
			continue
		}
		switch tag {
		case "W":
			w = &seen{}
			if err := json.Unmarshal([]byte(rest), &w.record); err != nil {
				w.record, w.Unsealed = record{}, "it cannot be read: "+err.Error()
			}
			all = append(all, w)
		case "N":
			w.Folder = rest
		case "K":
			if err := json.Unmarshal([]byte(rest), &w.Hooks); err != nil {
				return nil, fmt.Errorf("read how the hooks of a workspace ended: %w", err)
			}
		case "B":
			w.Restoring = rest
		case "P":
			w.Half = rest
		case "X":
			w.Unread = append(w.Unread, rest)
		case "H":
			w.Head = rest
		case "S":
			w.Stashes = append(w.Stashes, rest)
		case "R":
			sha, ref, _ := strings.Cut(rest, " ")
			switch {
			case strings.HasPrefix(ref, "refs/vmctl/host/"):
				w.Known = append(w.Known, sha)
			case ref != "refs/stash":
				w.Tips = append(w.Tips, sha)
				if ref == "refs/heads/"+w.Branch {
					w.Tip = sha
				}
			}
		case "V":
			w.At = rest
		case "M":
			w.holdsMount(rest)
		case "D":
			w.change(rest)
		case "F":
			w.reveal(rest)
		case "I":
			w.Inside = append(w.Inside, unquoted(rest))
		case "C":
			w.Copies = append(w.Copies, rest)
		case "O":
			w.Operations = append(w.Operations, rest)
		default:
			return nil, fmt.Errorf("read the workspaces: %q is not understood", line)
		}
	}
	return all, nil
}

// holdsMount reads a line of the list of mounts.
func (w *seen) holdsMount(line string) {
	all, err := mountinfo.Parse(line)
	if err != nil {
		w.Unread = append(w.Unread, err.Error())
	}
	all = slices.DeleteFunc(all, func(e mountinfo.Entry) bool { return e.Kind == sshfs.Kind }) // one of vmctl's own may be unmounted before
	w.Within = append(w.Within, mountinfo.In(w.At, all)...)
}

// change reads a line of git status (porcelain version 2).
func (w *seen) change(line string) {
	fields := map[byte]int{'1': 9, '2': 10, 'u': 11, '?': 2, '#': 0, '!': 0}
	if line == "" {
		return
	}
	n, known := fields[line[0]]
	if n == 0 && known {
		return
	}
	parts := strings.SplitN(line, " ", max(n, 2))
	if !known || len(parts) < n {
		w.Unread = append(w.Unread, line)
		return
	}
	name, _, _ := strings.Cut(parts[n-1], "\t")
	name = unquoted(name)
	switch line[0] {
	case '?':
		w.Untracked = append(w.Untracked, name)
	case 'u':
		w.Unstaged = append(w.Unstaged, name)
	default:
		if parts[1][0] != '.' {
			w.Staged = append(w.Staged, name)
		}
		if parts[1][1] != '.' {
			w.Unstaged = append(w.Unstaged, name)
		}
	}
}

// reveal reads a line of git status that was printed without the marks that hide changes, after all lines with them.
func (w *seen) reveal(line string) {
	var all seen
	all.change(line)
	for _, name := range all.Unstaged {
		if !slices.Contains(w.Unstaged, name) {
			w.Hidden = append(w.Hidden, name)
		}
	}
	w.Unread = append(w.Unread, all.Unread...)
}

// unquoted returns a path without git's quotes, as long as it fits on a line.
func unquoted(name string) string {
	if !strings.HasPrefix(name, `"`) {
		return name
	}
	plain, err := strconv.Unquote(name)
	if err != nil || strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' || r == '\ufffd' }) {
		return name
	}
	return plain
}

// commits returns the commits that only the workspace may have, sorted.
func (w *seen) commits() []string {
	all := slices.Concat(w.Tips, nil)
	if w.Head != "" {
		all = append(all, w.Head)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// unread lists what could not be read.
func (w *seen) unread() []string {
	if why := w.whyUnsealed(); why != "" {
		return append([]string{why}, w.Unread...)
	}
	return w.Unread
}
