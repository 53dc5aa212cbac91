package libvirt

import (
	"context"

	"vmctl/providers"
)

func (f *Fake) Part(_ context.Context, name, volume string, from int64, most int) ([]byte, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.pool(name)
	if err != nil {
		return nil, 0, err
	}
	b, ok := p.Volumes[volume]
	if !ok {
		return nil, 0, errAbsent
	}
	start, length := providers.PartOf(int64(len(b)), from, most)
	return b[start : start+length], start, nil
}
