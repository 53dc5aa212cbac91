//go:build cgo && libvirt_dlopen && linux

package provider_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

func (h *house) sha256(name string) string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(os.Getenv(homeVar), name))
	if err != nil {
		h.t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
