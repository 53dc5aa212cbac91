// Package sshtest runs an SSH server in the test's own process, for tests of SSH
// clients.
package sshtest

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os/exec" //nolint:depguard // a server for tests only, which runs what a test asks for
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// Server says how the server behaves. The zero value lets nobody in.
type Server struct {
	HostKey    ssh.Signer    // nil: a fresh one
	Authorized ssh.PublicKey // who may log in
	// Silent makes the server accept connections and never speak, like a forwarded port
	// whose guest does not listen yet.
	Silent bool
	// Deaf is the number of the first connections that the server accepts and never answers.
	Deaf int
	// Delay is the time that the server takes before it speaks.
	Delay time.Duration
	// Shell is the command that runs if a user asks for none.
	Shell string
	// Signal, when set, is reported as the end of every command; no command runs.
	Signal string
	// Drop ends the connection in the middle of every command.
	Drop bool
	// Seen gets the types of the requests of every session, such as "pty-req".
	Seen func(request string)
}

// Start listens on a free port of the loopback and returns it. Everything ends
// with the test.
func (s Server) Start(t testing.TB) int {
	t.Helper()
	if s.HostKey == nil {
		s.HostKey = NewKey(t)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			silent := s.Silent || len(conns) <= s.Deaf
			mu.Unlock()
			open.Go(func() { s.serve(conn, silent) })
		}
	})
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		mu.Lock()
		for _, c := range conns {
			quiet(c)
		}
		mu.Unlock()
		open.Wait()
	})
	return listener.Addr().(*net.TCPAddr).Port
}

// NewKey makes a key pair.
func NewKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func (s Server) serve(conn net.Conn, silent bool) {
	defer quiet(conn)
	time.Sleep(s.Delay)
	if silent {
		if _, err := io.Copy(io.Discard, conn); err != nil {
			return
		}
		return
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if s.Authorized != nil && bytes.Equal(key.Marshal(), s.Authorized.Marshal()) {
			return nil, nil
		}
		return nil, errors.New("not authorized")
	}}
	config.AddHostKey(s.HostKey)
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	defer quiet(server)
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		s.session(channel, requests, conn)
	}
}

// session serves one channel until the client closes it.
func (s Server) session(channel ssh.Channel, requests <-chan *ssh.Request, conn net.Conn) {
	var running sync.WaitGroup
	defer running.Wait()
	defer quiet(channel)
	for r := range requests {
		if s.Seen != nil {
			s.Seen(r.Type)
		}
		if r.WantReply && r.Reply(true, nil) != nil {
			return
		}
		command := s.Shell
		switch r.Type {
		case "exec":
			command = string(r.Payload[4:])
		case "shell":
		default:
			continue
		}
		if s.Drop {
			quiet(conn)
			return
		}
		running.Go(func() {
			s.run(channel, command)
			quiet(channel)
		})
	}
}

// run hands the command to a shell, as a real server does.
func (s Server) run(channel ssh.Channel, command string) {
	if s.Signal != "" {
		_, err := channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal  string
			Dumped  bool
			Message string
			Lang    string
		}{Signal: s.Signal}))
		_ = err // the client sees what is missing
		return
	}
	cmd := exec.Command("/bin/sh", "-c", command) //nolint:forbidigo // as above: for tests only
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	input, err := cmd.StdinPipe()
	if err != nil {
		return
	}
	go func() {
		if _, err := io.Copy(input, channel); err == nil {
			quiet(input)
		}
	}()
	status := uint32(0)
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		status = uint32(exit.ExitCode())
	case err != nil:
		status = 127
	}
	_, err = channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, status))
	_ = err // the client sees what is missing
}

// quiet closes what the other side may have closed already.
func quiet(c io.Closer) { _ = c.Close() } //nolint:errcheck // see above
