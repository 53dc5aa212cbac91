// Package sshx makes keys, waits for servers and runs commands over SSH. It
// checks every server's host key against a known_hosts file of the caller's and
// never asks anybody anything.
package sshx

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/crypto/ssh"

	"vmctl/internal/atomicfile"
	"vmctl/internal/shellword"
)

// EnsureKey makes sure that path holds a private ed25519 key in OpenSSH's
// format (0600) and path+".pub" its public half, and returns the public half as
// an authorized_keys line without a line break.
//
// A valid private key is kept, and a missing or foreign public half is written
// anew from it. A private key that cannot be used is an error that names the
// file: it is never replaced, since something may trust it. Folders are made
// with mode 0700. Files are written whole or not at all.
func EnsureKey(path, comment string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("make a key pair: %w", err)
	}
	signer, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		signer, err = makePrivate(path, comment)
	}
	if err != nil {
		return "", err
	}
	line := authorizedLine(signer.PublicKey(), comment)
	if kept, err := os.ReadFile(path + ".pub"); err == nil && samePublic(kept, signer.PublicKey()) {
		return strings.TrimSpace(string(kept)), nil
	}
	if err := atomicfile.Write(path+".pub", []byte(line+"\n"), 0o644); err != nil {
		return "", err
	}
	return line, nil
}

// PublicKey returns the public half of the private key at path as an
// authorized_keys line without a line break. It is read from path+".pub" where
// that exists, else derived; a key with a passphrase needs no passphrase here.
func PublicKey(path string) (string, error) {
	text, err := os.ReadFile(path + ".pub")
	if err == nil {
		if _, _, _, _, err := ssh.ParseAuthorizedKey(text); err != nil {
			return "", fmt.Errorf("read the public key %s.pub: it holds no key: %w", path, err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read a public key: %w", err)
	}
	signer, err := readPrivate(path)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) && locked.PublicKey != nil {
		return authorizedLine(locked.PublicKey, ""), nil
	}
	if err != nil {
		return "", err
	}
	return authorizedLine(signer.PublicKey(), ""), nil
}

// PublicOf returns the public half of a private key without a passphrase as an authorized_keys line
// without a line break.
func PublicOf(private []byte) (string, error) {
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return "", fmt.Errorf("read a private key: %w", err)
	}
	return authorizedLine(signer.PublicKey(), ""), nil
}

// CheckAuthorized returns why a text is no line of authorized_keys. A trailing line break
// is none of its faults.
func CheckAuthorized(text string) error {
	text = strings.TrimSpace(text)
	switch _, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(text)); {
	case strings.HasPrefix(text, "-----BEGIN"):
		return errors.New("is a private key: write the public half, which is in the file that ends in .pub")
	case strings.ContainsAny(text, "\r\n"), len(rest) > 0:
		return errors.New("has several lines: write one element for each key")
	case err != nil:
		return errors.New("is no line of authorized_keys: write for example \"ssh-ed25519 AAAA… name\", or file(\"id_ed25519.pub\")")
	default:
		return nil
	}
}

// othersMay are the permissions of a private key that OpenSSH refuses, too
// (sshkey_perm_ok in its authfile.c).
const othersMay = 0o077

// CheckMode refuses a private key that others may read. A file that does not exist passes.
func CheckMode(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&othersMay == 0 {
		return nil
	}
	return fmt.Errorf("the private key %s may be read by others (mode %04o): chmod 600 %s", path, info.Mode().Perm(), shellword.Quote(path))
}

// readPrivate returns the key at path. A file that does not exist is
// fs.ErrNotExist, a passphrase *ssh.PassphraseMissingError.
func readPrivate(path string) (ssh.Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the private key: %w", err)
	}
	if err := CheckMode(path); err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("the private key %s cannot be used: %w; put back an intact copy, or remove it and its .pub for a fresh pair", path, err)
	}
	return signer, nil
}

func makePrivate(path, comment string) (ssh.Signer, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make a key pair: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(crypto.PrivateKey(key), comment)
	if err != nil {
		return nil, fmt.Errorf("make a key pair: %w", err)
	}
	if err := atomicfile.Write(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}

func authorizedLine(key ssh.PublicKey, comment string) string {
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	if comment == "" {
		return line
	}
	return line + " " + comment
}

func samePublic(line []byte, key ssh.PublicKey) bool {
	kept, _, _, _, err := ssh.ParseAuthorizedKey(line)
	return err == nil && bytes.Equal(kept.Marshal(), key.Marshal())
}
