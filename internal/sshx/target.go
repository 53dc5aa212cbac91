package sshx

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Target describes a server: its address, the login and the host key by which it is known.
type Target struct {
	Address      string // host name or IP address
	Port         int
	User         string
	IdentityFile string // private key; "": there is none, and nobody is let in
	Alias        string // the name under which the server's host key is known
	KnownHosts   string // file
	// HostKey is the only host key that is accepted, an authorized_keys line. "":
	// KnownHosts holds the accepted keys. AcceptNew makes vmctl ignore HostKey.
	// HostKeyFrom names the place that pins HostKey, for people.
	HostKey, HostKeyFrom string
	// AcceptNew adds the host key of a server that the file does not know yet.
	// Otherwise such a server is refused.
	AcceptNew bool
	// Banner limits connecting and the wait for the server's first words. Handshake
	// limits the time from these to the end of the login. 0: 15 and 30 seconds. On a busy
	// machine an emulated guest took more than 5 for its first words.
	Banner, Handshake time.Duration

	eager func() time.Duration // between new connections while one waits for the first words; nil: there are none
}

// HostKeyError reports that a server showed a host key by which it is not known. The
// client did not log in.
type HostKeyError struct {
	Alias      string
	KnownHosts string
	From       string   // who pins the key instead; "": KnownHosts
	Shown      string   // fingerprint
	Known      []string // fingerprints; none: the server is not known at all
}

// Error names the shown key and the accepted ones.
func (e *HostKeyError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("%s shows the host key %s, and %s knows no key of it", e.Alias, e.Shown, e.KnownHosts)
	}
	return fmt.Sprintf("%s shows the host key %s instead of %s, which %s pins", e.Alias, e.Shown, strings.Join(e.Known, " or "), cmp.Or(e.From, e.KnownHosts))
}

// AuthError reports that the server refused the login with the key.
type AuthError struct {
	User, IdentityFile string
	Err                error
}

// Error names the user and the key.
func (e *AuthError) Error() string {
	if e.IdentityFile == "" {
		return fmt.Sprintf("the server does not let %s in without a key", e.User)
	}
	return fmt.Sprintf("the server does not let %s in with %s", e.User, e.IdentityFile)
}

// Unwrap returns the cause.
func (e *AuthError) Unwrap() error { return e.Err }

// IdentityError reports that the private key cannot be used.
type IdentityError struct{ Err error }

// Error says why.
func (e *IdentityError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *IdentityError) Unwrap() error { return e.Err }

// Connect connects to the target and logs in. The caller closes the client.
func (t Target) Connect(ctx context.Context) (*ssh.Client, error) {
	auth, err := t.auth()
	if err != nil {
		return nil, &IdentityError{Err: err}
	}
	check := hostKeyCheck{target: t}
	if check.known, err = t.hostKeys(); err != nil {
		return nil, err
	}
	conn, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { closeQuietly(conn) })
	defer stop()
	_, handshake := t.limits()
	if err := conn.SetDeadline(time.Now().Add(handshake)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c, channels, requests, err := ssh.NewClientConn(conn, t.hostPort(), &ssh.ClientConfig{
		User:              t.User,
		Auth:              auth,
		HostKeyCallback:   check.callback,
		HostKeyAlgorithms: algorithms(check.known),
	})
	if err != nil {
		closeQuietly(conn)
		return nil, t.explain(ctx, err, &check)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return ssh.NewClient(c, channels, requests), nil
}

func (t Target) auth() ([]ssh.AuthMethod, error) {
	if t.IdentityFile == "" {
		return nil, nil
	}
	signer, err := readPrivate(t.IdentityFile)
	return []ssh.AuthMethod{ssh.PublicKeys(signer)}, err
}

// hostKeys returns the host keys that the server may show. If there are none, AcceptNew
// decides whether a new key is accepted.
func (t Target) hostKeys() ([]ssh.PublicKey, error) {
	if t.HostKey == "" || t.AcceptNew {
		return readKnownHosts(t.KnownHosts, t.Alias)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(t.HostKey))
	if err != nil {
		return nil, fmt.Errorf("read the host key of %s, which %s pins: %w", t.Alias, t.HostKeyFrom, err)
	}
	return []ssh.PublicKey{key}, nil
}

// explain turns the error of the library into one that names the cause.
func (t Target) explain(ctx context.Context, err error, check *hostKeyCheck) error {
	var late net.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case check.failure != nil:
		return check.failure
	case strings.Contains(err.Error(), "unable to authenticate"):
		return &AuthError{User: t.User, IdentityFile: t.IdentityFile, Err: err}
	case errors.As(err, &late) && late.Timeout():
		return errors.New("the SSH server stopped answering during the login")
	default:
		return err
	}
}

func (t Target) hostPort() string { return net.JoinHostPort(t.Address, strconv.Itoa(t.Port)) }

func (t Target) limits() (banner, handshake time.Duration) {
	banner, handshake = t.Banner, t.Handshake
	if banner <= 0 {
		banner = 15 * time.Second
	}
	if handshake <= 0 {
		handshake = 30 * time.Second
	}
	return banner, handshake
}

func closeQuietly(c io.Closer) {
	_ = c.Close() //nolint:errcheck // the connection is given up for a reason that is reported
}

type hostKeyCheck struct {
	target  Target
	known   []ssh.PublicKey
	failure error
}

func (h *hostKeyCheck) callback(_ string, _ net.Addr, key ssh.PublicKey) error {
	shown := key.Marshal()
	if slices.ContainsFunc(h.known, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), shown) }) {
		return nil
	}
	if len(h.known) == 0 && h.target.AcceptNew {
		h.failure = addKnownHost(h.target.KnownHosts, h.target.Alias, key)
		return h.failure
	}
	e := &HostKeyError{Alias: h.target.Alias, KnownHosts: h.target.KnownHosts, Shown: ssh.FingerprintSHA256(key)}
	if h.target.HostKey != "" && !h.target.AcceptNew {
		e.From = h.target.HostKeyFrom
	}
	for _, k := range h.known {
		e.Known = append(e.Known, ssh.FingerprintSHA256(k))
	}
	h.failure = e
	return e
}

// algorithms returns the host key algorithms to request, so that a server with several keys shows
// one that is known.
func algorithms(known []ssh.PublicKey) []string {
	var all []string
	for _, k := range known {
		if k.Type() == ssh.KeyAlgoRSA {
			all = append(all, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		all = append(all, k.Type())
	}
	return all
}

// Config returns a stanza for OpenSSH's configuration that reaches the target
// under the name host, with the same key and the same check of the host key. It
// ends with a line break.
func Config(t Target, host string) string {
	strict := "yes"
	if t.AcceptNew {
		strict = "accept-new"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Host %s\n", host)
	for _, option := range [][2]string{
		{"HostName", t.Address},
		{"Port", fmt.Sprint(t.Port)},
		{"User", t.User},
		{"IdentityFile", configPath(t.IdentityFile)},
		{"IdentitiesOnly", "yes"},
		{"HostKeyAlias", t.Alias},
		{"UserKnownHostsFile", configPath(t.KnownHosts)},
		{"GlobalKnownHostsFile", "/dev/null"},
		{"StrictHostKeyChecking", strict},
	} {
		fmt.Fprintf(&b, "  %s %s\n", option[0], option[1])
	}
	return b.String()
}

// configPath quotes a path for ssh_config(5): quotes keep spaces, and %% stands
// for a percent sign.
func configPath(path string) string {
	path = strings.ReplaceAll(path, "%", "%%")
	path = strings.ReplaceAll(path, `\`, `\\`)
	return `"` + strings.ReplaceAll(path, `"`, `\"`) + `"`
}
