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
}

// owner is the owner mark in a file.
type owner struct {
	ID, Project string
	Address     spec.Address
	Of          providers.ID
	Generation  uint64
}

// The programs that work on boxes, as arguments of a POSIX shell. The folder "boxes" in their working
// directory holds all boxes of one place; "in", in the folder of each, is the place inside of it.
const (
	// list prints the file of each box. A reading needs no other program: thousands of plans read.
	list = `
if [ ! -d boxes ]; then [ ! -e boxes ]; exit; fi
cd boxes || exit 1
for f in */box; do
  [ -f "$f" ] || continue
  if IFS= read -r line <"$f"; then printf '%s\n' "$line"; elif [ -e "$f" ]; then exit 1; fi
done`
	// put writes the file of a box from the standard input: put LABEL ID new|old. A box that is new and
	// exists already has status 3.
	put = `
set -e
umask 077
IFS= read -r line
if [ "$3" = new ]; then mkdir -p "boxes/$1/in"; else [ -e "boxes/$1/box" ]; fi
printf '%s\n' "$line" >"boxes/$1/.$2"
if [ "$3" = old ]; then exec mv "boxes/$1/.$2" "boxes/$1/box"; fi
ln "boxes/$1/.$2" "boxes/$1/box" || status=3
rm "boxes/$1/.$2"
exit "${status:-0}"`
	// remove removes a box with all that is inside of it: remove LABEL ID.
	remove = `
set -e
rm -rf "boxes/.$2"
if [ -e "boxes/$1" ]; then mv "boxes/$1" "boxes/.$2"; fi
rm -rf "boxes/.$2"
rmdir boxes || true`
)

// run runs one of the programs in the guest around the boxes.
func (p *Provider) run(ctx context.Context, program string, stdin []byte, args ...string) (providers.Output, []byte, error) {
	g, err := p.settings.Via.Enter(ctx)
	if err != nil {
		return providers.Output{}, nil, err
	}
	var out bytes.Buffer
	c := providers.Command{Args: append([]string{"sh", "-c", program, "box"}, args...), Stdout: &out}
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
		err = fmt.Errorf("list the boxes: status %d: %s", o.Status, o.Stderr)
	}
	if err != nil {
		return nil, err
	}
	var all []file
	for line := range strings.Lines(string(out)) {
		var f file
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			return nil, fmt.Errorf("read a box: %w", err)
		}
		all = append(all, f)
	}
	return all, nil
}
