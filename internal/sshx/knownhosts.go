package sshx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/crypto/ssh"

	"vmctl/internal/atomicfile"
)

// Pin makes the known_hosts file at path know alias by the one key in line, an
// authorized_keys line, and by no other. Other aliases in the file are kept.
func Pin(path, alias, line string) error {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return fmt.Errorf("pin the host key of %s: %w", alias, err)
	}
	known, err := readKnownHosts(path, alias)
	if err == nil && len(known) == 1 && bytes.Equal(known[0].Marshal(), key.Marshal()) {
		return nil
	}
	return writeKnownHost(path, alias, key)
}

func addKnownHost(path, alias string, key ssh.PublicKey) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("remember the host key of %s: %w", alias, err)
	}
	return writeKnownHost(path, alias, key)
}

// writeKnownHost replaces all that the file says about alias.
func writeKnownHost(path, alias string, key ssh.PublicKey) error {
	var out bytes.Buffer
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remember the host key of %s: %w", alias, err)
	}
	for line := range bytes.Lines(text) {
		if _, hosts, _, _, _, err := ssh.ParseKnownHosts(line); err != nil || !slices.Contains(hosts, alias) {
			out.Write(line)
		}
	}
	if out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "%s %s", alias, ssh.MarshalAuthorizedKey(key))
	return atomicfile.Write(path, out.Bytes(), 0o600)
}

// readKnownHosts returns the keys that the file knows alias by. A file that does
// not exist knows nobody.
func readKnownHosts(path, alias string) ([]ssh.PublicKey, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read known host keys: %w", err)
	}
	var keys []ssh.PublicKey
	for {
		_, hosts, key, _, rest, err := ssh.ParseKnownHosts(text)
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read known host keys: %s: %w", path, err)
		}
		if slices.Contains(hosts, alias) {
			keys = append(keys, key)
		}
		text = rest
	}
}
