package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"vmctl/providers"
)

var _ providers.ConsoleReader = (*Provider)(nil)

// Console implements providers.ConsoleReader: the output of a VM's process is kept until the
// next start.
func (p *Provider) Console(ctx context.Context, o providers.Object, from int64, most int) (providers.Console, error) {
	vm, err := p.observeVM(ctx, o.Name) // before the text, so that its last words are read
	if err != nil {
		return providers.Console{}, err
	}
	f, err := os.Open(p.logPath(o.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return providers.Console{}, fmt.Errorf("no process has run it yet: %w", providers.ErrNoConsole)
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
		return providers.Console{}, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return providers.Console{Text: text, Start: start, More: vm.on()}, nil
}
