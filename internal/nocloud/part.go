package nocloud

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// part is one part of a message of several (RFC 2046).
type part struct {
	kind string // content type; "": text has its own headers
	text string
}

// Check fails unless cloud-init would do something with user data: it passes
// over what begins in no way that it knows, and says so only in its log.
func Check(userData string) error {
	switch {
	case len(userData) > textLimit:
		return fmt.Errorf("it has %d bytes, and %d are the most: put what is large into the image, or fetch it from a script",
			len(userData), textLimit)
	case userData == "" || isMessage(userData) || kindOf(userData) != "":
		return nil
	}
	first, _, _ := strings.Cut(userData, "\n")
	return fmt.Errorf("it begins with %s, which cloud-init passes over: begin with %q for settings, or with \"#!/bin/sh\" for a script",
		strconv.QuoteToASCII(first[:min(len(first), 40)]), cloudConfig)
}

// CheckNetworkConfig fails if a network configuration is longer than textLimit.
func CheckNetworkConfig(text string) error {
	if len(text) > textLimit {
		return fmt.Errorf("it has %d bytes, and %d are the most", len(text), textLimit)
	}
	return nil
}

func partOf(userData string) part {
	if isMessage(userData) {
		return part{text: userData}
	}
	return part{kind: kindOf(userData), text: userData}
}

// kindOf is the content type of what begins in a way that cloud-init knows; "":
// it begins in none.
func kindOf(userData string) string {
	for _, k := range kinds {
		if strings.HasPrefix(userData, k.begins) {
			return k.is
		}
	}
	return ""
}

// isMessage reports whether user data has its own headers: one part, or several.
func isMessage(userData string) bool {
	head := strings.ToLower(userData[:min(len(userData), 64)])
	return strings.HasPrefix(head, "content-type:") || strings.HasPrefix(head, "mime-version:")
}

// join makes one message of parts. Its boundary is in none of them.
func join(parts ...part) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%s %d\n%s", p.kind, len(p.text), p.text)
	}
	boundary := "vmctl-" + hex.EncodeToString(sum.Sum(nil))[:32]
	var b strings.Builder
	fmt.Fprintf(&b, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"%s\"\n", boundary)
	for _, p := range parts {
		fmt.Fprintf(&b, "\n--%s\n", boundary)
		if p.kind == "" {
			b.WriteString(strings.TrimSuffix(p.text, "\n"))
			continue
		}
		fmt.Fprintf(&b, "Content-Type: %s; charset=\"utf-8\"\nMIME-Version: 1.0\nContent-Transfer-Encoding: base64\n\n", p.kind)
		b.WriteString(wrapped(base64.StdEncoding.EncodeToString([]byte(p.text))))
	}
	fmt.Fprintf(&b, "\n--%s--\n", boundary)
	return b.String()
}

// wrapped breaks a text into lines of the length that mail has.
func wrapped(text string) string {
	const width = 76
	var lines []string
	for len(text) > width {
		lines, text = append(lines, text[:width]), text[width:]
	}
	return strings.Join(append(lines, text), "\n")
}
