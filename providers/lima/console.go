package lima

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"vmctl/providers"
)

// Console returns a part of the guest's console output, which Lima begins anew at each start.
func (p *Provider) Console(ctx context.Context, o providers.Object, from int64, most int) (providers.Console, error) {
	running := p.find(ctx).of[o.Name] // before the text, so that its last words are read
	path := p.console(o.Name)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return providers.Console{}, errors.New("it was never started: it has no console output")
	}
	if err != nil {
		return providers.Console{}, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return providers.Console{}, err
	}
	start, length := providers.PartOf(info.Size(), from, most)
	text, err := io.ReadAll(io.NewSectionReader(f, start, length))
	if err != nil {
		return providers.Console{}, fmt.Errorf("read %s: %w", path, err)
	}
	return providers.Console{Text: text, Start: start, More: len(running) > 0}, nil
}

// console returns the log of the first console that the guest has written to: which one it uses
// depends on its kernel.
func (p *Provider) console(name string) string {
	first := ""
	for _, file := range []string{"serial.log", "serialp.log", "serialv.log"} {
		path := p.path(name, file)
		info, err := os.Stat(path)
		if err == nil && info.Size() > 0 {
			return path
		}
		if err == nil {
			first = cmp.Or(first, path)
		}
	}
	return cmp.Or(first, p.path(name, "serial.log"))
}
