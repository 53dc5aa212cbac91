package state

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/atomicfile"
)

// digestKeyFile names the file with the key of the digests of sensitive values (DESIGN.md, rule 9).
const digestKeyFile = "digest.key"

// digestKeySize is the size of the key (bytes): that of a SHA-256, as RFC 2104 recommends.
const digestKeySize = sha256.Size

// A DigestKey makes digests of sensitive values. Without the key nobody can find out a value by trying.
// The zero value is no key.
type DigestKey struct{ key []byte }

// DigestKey reads the key of the data directory. It is zero if the directory has none. An error has advice.
func (f Folder) DigestKey() (DigestKey, error) {
	path := filepath.Join(f.Dir, digestKeyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return DigestKey{}, nil
	}
	if err != nil {
		return DigestKey{}, &advised{fmt.Errorf("read the key of digests: %w", err), keyAdvice(path, err)}
	}
	key, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(key) != digestKeySize {
		return DigestKey{}, &advised{
			fmt.Errorf("read the key of digests: %s is damaged", path),
			"put back a copy of it, or delete it: the next apply makes a new one, and takes sensitive values that the system does not show for unchanged",
		}
	}
	return DigestKey{key}, nil
}

// keyAdvice returns the advice for a key that cannot be read.
func keyAdvice(path string, err error) string {
	info, statErr := os.Stat(path)
	switch {
	case statErr == nil && info.IsDir():
		return "remove that folder, and put back a copy of the key if there is one"
	case errors.Is(err, fs.ErrPermission):
		return "make that file readable for this user: chown it, and chmod 600"
	default:
		return "put back a copy of it"
	}
}

// MakeDigestKey returns the key of the data directory, and makes it if there is none. Two processes
// that make it at once get the same key.
func (f Folder) MakeDigestKey(random io.Reader) (DigestKey, error) {
	if k, err := f.DigestKey(); err != nil || !k.IsZero() {
		return k, err
	}
	k, err := NewDigestKey(random)
	if err != nil {
		return DigestKey{}, err
	}
	return f.SaveDigestKey(k)
}

// SaveDigestKey gives the data directory a key if it has none, and returns the key that it has.
func (f Folder) SaveDigestKey(k DigestKey) (DigestKey, error) {
	if has, err := f.DigestKey(); err != nil || !has.IsZero() { // a full disk has no room for the temporary file of another one
		return has, err
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return DigestKey{}, fmt.Errorf("make the key of digests: %w", err)
	}
	path, text := filepath.Join(f.Dir, digestKeyFile), append(hex.AppendEncode(nil, k.key), '\n')
	err := atomicfile.Create(path, text, 0o600)
	if errors.Is(err, fs.ErrNotExist) { // another process took the run lock, and removed the temporary file
		err = atomicfile.Create(path, text, 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return DigestKey{}, fmt.Errorf("make the key of digests: %w", err)
	}
	return f.DigestKey()
}

// NewDigestKey returns a new key, which is in no file.
func NewDigestKey(random io.Reader) (DigestKey, error) {
	key := make([]byte, digestKeySize)
	if _, err := io.ReadFull(random, key); err != nil {
		return DigestKey{}, fmt.Errorf("make the key of digests: %w", err)
	}
	return DigestKey{key}, nil
}

// IsZero reports whether there is no key.
func (k DigestKey) IsZero() bool { return k.key == nil }

// idChars is the length of the part of a digest that names its key.
const idChars = 8

// sum returns the MAC of texts. Each has its length before it: different lists have different MACs.
func (k DigestKey) sum(texts ...string) string {
	mac := hmac.New(sha256.New, k.key)
	for _, text := range texts {
		fmt.Fprintf(mac, "%d %s", len(text), text)
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// id names the key in its digests.
func (k DigestKey) id() string { return k.sum("key")[:idChars] }

// Digest returns the digest of the value at a path of an object: "" without a key. Equal values of two
// objects, or at two paths, have different digests.
func (k DigestKey) Digest(object, path string, v cty.Value) string {
	if k.IsZero() {
		return ""
	}
	text, err := appendPlain(nil, v)
	if err != nil {
		return ""
	}
	return k.id() + "." + k.sum("value", object, path, string(text))
}

// Made reports whether k made a digest. The digests of other keys cannot be compared.
func (k DigestKey) Made(digest string) bool {
	return !k.IsZero() && strings.HasPrefix(digest, k.id()+".")
}

// Text returns a digest of a text that may have secrets in it, "" without a key. A use keeps apart digests that are not
// to be compared.
func (k DigestKey) Text(use, text string) string {
	if k.IsZero() {
		return ""
	}
	return k.sum("text", use, text)
}
