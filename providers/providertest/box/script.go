package box

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// file is a box in the guest: the one line of the file "box" in its folder.
type file struct {
	ID      providers.ID
	Label   string
	Name    string // of the object
	Open    bool
	Content string
	Paint   string
	Owner   *owner `json:",omitempty"`
	// Work has what people have left in it: lines of the file "work" beside the box.
	Work string `json:"-"`
}

// owner is the owner mark in a file.
type owner struct {
	ID, Project string
	Address     spec.Address
	Of          providers.ID
	Generation  uint64
}

// The programs that work on boxes, as arguments of a POSIX shell. A folder in their working directory, whose name
// they get first, holds all boxes of one place; "in", in the folder of each, is the place inside of it.
const (
	// list prints the file of each box, and each line of the work beside it after a "+". A reading needs no other program:
	// thousands of plans read.
	list = `
if [ ! -d "$0" ]; then [ ! -e "$0" ]; exit; fi
cd "$0" || exit 1
for f in */box; do
  [ -f "$f" ] || continue
  if IFS= read -r line <"$f"; then printf '%s\n' "$line"; elif [ -e "$f" ]; then exit 1; fi
  [ ! -f "${f%box}work" ] || while IFS= read -r line; do printf '+%s\n' "$line"; done <"${f%box}work"
done`
	// put writes the file of a box from the standard input: put LABEL ID new|old. A box that is new and
	// exists already has status 3.
	put = `
set -e
umask 077
IFS= read -r line
if [ "$3" = new ]; then mkdir -p "$0/$1/in"; else [ -e "$0/$1/box" ]; fi
printf '%s\n' "$line" >"$0/$1/.$2"
if [ "$3" = old ]; then exec mv "$0/$1/.$2" "$0/$1/box"; fi
ln "$0/$1/.$2" "$0/$1/box" || status=3
rm "$0/$1/.$2"
exit "${status:-0}"`
	// remove removes a box with all that is inside of it: remove LABEL ID.
	remove = `
set -e
rm -rf "$0/.$2"
if [ -e "$0/$1" ]; then mv "$0/$1" "$0/.$2"; fi
rm -rf "$0/.$2"
rmdir "$0" || true`
)

// run runs one of the programs in the guest around the boxes.
func (p *Provider) run(ctx context.Context, program string, stdin []byte, args ...string) (providers.Output, []byte, error) {
	g, err := p.settings.Via.Enter(ctx)
	if err != nil {
		return providers.Output{}, nil, err
	}
	var out bytes.Buffer
	c := providers.Command{Args: append([]string{"sh", "-c", program, p.folder}, args...), Stdout: &out}
	if stdin != nil {
		c.Stdin = bytes.NewReader(stdin)
	}
	o, err := g.Run(ctx, c)
	return o, out.Bytes(), err
}

// files returns all boxes of the place.
func (p *Provider) files(ctx context.Context) ([]file, error) {
	o, out, err := p.run(ctx, list, nil)
	if err == nil && o.Status != 0 {
		err = fmt.Errorf("list the %s: status %d: %s", p.folder, o.Status, o.Stderr)
	}
	if err != nil {
		return nil, err
	}
	var all []file
	for line := range strings.Lines(string(out)) {
		if work, is := strings.CutPrefix(line, "+"); is && len(all) > 0 {
			all[len(all)-1].Work += work
			continue
		}
		var f file
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			return nil, fmt.Errorf("read a box: %w", err)
		}
		all = append(all, f)
	}
	return all, nil
}
