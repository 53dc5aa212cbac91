package libvirt

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// sidecarBytes is the size of every sidecar. It never changes, so that one write replaces a
// mark in its place: a volume is never without a mark.
const sidecarBytes = 4096

// sidecarOf names the small volume beside a disk that holds its owner mark: libvirt's volumes
// have no room for one. The mark is written before the disk is made, and removed after it.
func sidecarOf(volume string) string { return kindSidecar.name(volume, "") }

// sidecar is the owner mark of a volume.
type sidecar struct {
	providers.Mark
	Volume    string // the name of the volume that it was written for
	DataDirID string // the data directory that wrote it; "": an older vmctl
}

type sidecarJSON struct {
	ID         string `json:"id"`
	Project    string `json:"project"`
	Address    string `json:"address"`
	Of         string `json:"of"`
	Volume     string `json:"volume"`
	Generation uint64 `json:"generation"`
	DataDirID  string `json:"seat,omitempty"`
}

// bytes returns the content of the sidecar's volume.
func (s sidecar) bytes() ([]byte, error) {
	text, err := json.Marshal(sidecarJSON{
		ID: s.ID, Project: s.Project, Address: s.Address.String(), Of: string(s.Of), Volume: s.Volume, Generation: s.Generation, DataDirID: s.DataDirID,
	})
	if err != nil {
		return nil, err
	}
	if len(text) >= sidecarBytes {
		return nil, fmt.Errorf("the owner mark of %s has %d bytes, and there is room for %d", s.Volume, len(text), sidecarBytes-1)
	}
	return append(append(text, bytes.Repeat([]byte(" "), sidecarBytes-len(text)-1)...), '\n'), nil
}

// errBlank reports that a sidecar holds no mark yet: its writer was killed before it wrote.
var errBlank = errors.New("it is empty")

// parseSidecar reads the content of a sidecar's volume.
func parseSidecar(content []byte) (sidecar, error) {
	text := bytes.Trim(content, "\x00 \n")
	if len(text) == 0 {
		return sidecar{}, errBlank
	}
	var x sidecarJSON
	if err := json.Unmarshal(text, &x); err != nil {
		return sidecar{}, fmt.Errorf("it is no owner mark: %w", err)
	}
	if x.ID == "" || x.Of == "" || x.Volume == "" {
		return sidecar{}, errors.New("it is no owner mark: it does not say whose it is")
	}
	s := sidecar{Volume: x.Volume, DataDirID: x.DataDirID}
	s.ID, s.Project, s.Of, s.Generation = x.ID, x.Project, providers.ID(x.Of), x.Generation
	if a, err := spec.ParseAddress(x.Address); err == nil {
		s.Address = a
	}
	return s, nil
}

// volumeID returns the ID for an imported volume. It is always the same, so that a written
// mark is found again after a crash.
func volumeID(lineage, path string) providers.ID {
	sum := sha256.Sum256([]byte("vmctl volume\x00" + lineage + "\x00" + path))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // RFC 9562: version 8
	return providers.ID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// isPath reports whether an ID is the path of a volume that bears no mark.
func isPath(id providers.ID) bool { return strings.HasPrefix(string(id), "/") }
