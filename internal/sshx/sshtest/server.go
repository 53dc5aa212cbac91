// Package sshtest runs an SSH server in the test's own process, for tests of SSH
// clients.
package sshtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec" //nolint:depguard // a server for tests only, which runs what a test asks for
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	// Seen gets the types of the requests of every session, such as "pty-req".
	Seen func(request string)
	// Ends is the number of the first sessions of a connection that the server closes in answer to
	// their first request.
	Ends int
	// Refuses is the type of the requests that the server refuses; "": none.
	Refuses string
	// Login is the user's login shell, with the option before a command; nil: /bin/sh -c.
	Login []string
	// Home is the directory in which commands run, with that HOME; "": this process's own.
	Home string
	// MaxSessions is the number of sessions that a connection may have at a time; 0: any; -1: none.
	// Like OpenSSH, the server refuses those beyond.
	MaxSessions int
	// NoForwarding is the reason for which the server refuses to forward connections: ssh.Prohibited, as OpenSSH does with its
	// forwarding off, or ssh.UnknownChannelType, as Dropbear does for unix sockets; 0: it forwards.
	NoForwarding ssh.RejectionReason
	// Forwarded is called with every request to forward a connection. May be nil.
	Forwarded func()
	// Accept is called with every connection, and returns the one to serve. May be nil.
	Accept func(net.Conn) net.Conn
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
			if s.Accept != nil {
				conn = s.Accept(conn)
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
	var serving sync.WaitGroup
	defer serving.Wait()
	var sessions, ended atomic.Int64
	for c := range channels {
		if strings.HasPrefix(c.ChannelType(), "direct-") {
			if s.Forwarded != nil {
				s.Forwarded()
			}
			if s.NoForwarding != 0 {
				_ = c.Reject(s.NoForwarding, "no") //nolint:errcheck // the client may have gone
				continue
			}
		}
		switch c.ChannelType() {
		case "session":
			if n := sessions.Add(1); s.MaxSessions != 0 && n > int64(s.MaxSessions) {
				sessions.Add(-1)
				reject(c, "open failed")
				continue
			}
			serving.Go(func() {
				s.session(c, ended.Add(1) <= int64(s.Ends), func() { sessions.Add(-1) })
			})
		case "direct-tcpip":
			var to struct {
				Host       string
				Port       uint32
				Origin     string
				OriginPort uint32
			}
			serving.Go(func() {
				if ssh.Unmarshal(c.ExtraData(), &to) == nil {
					forward(c, "tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
				}
			})
		case "direct-streamlocal@openssh.com":
			var to struct {
				Path     string
				Reserved string
				Unused   uint32
			}
			serving.Go(func() {
				if ssh.Unmarshal(c.ExtraData(), &to) == nil {
					forward(c, "unix", to.Path)
				}
			})
		default:
			reject(c, "unknown channel type")
		}
	}
}

func reject(c ssh.NewChannel, why string) {
	_ = c.Reject(ssh.ConnectionFailed, why) //nolint:errcheck // the client may have gone
}

// forward connects a channel with a server.
func forward(c ssh.NewChannel, network, address string) {
	conn, err := net.Dial(network, address)
	if err != nil {
		reject(c, err.Error())
		return
	}
	defer quiet(conn)
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	defer quiet(channel)
	go ssh.DiscardRequests(requests)
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(channel, conn) //nolint:errcheck // one of the two has gone
		_ = channel.CloseWrite()      //nolint:errcheck // see above
	})
	both.Go(func() {
		_, _ = io.Copy(conn, channel) //nolint:errcheck // see above
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() //nolint:errcheck // see above
		}
	})
	both.Wait()
}

// session serves one session until the client closes it, or closes it at its first request. over is
// called when its place is free for another one.
func (s Server) session(c ssh.NewChannel, ends bool, over func()) {
	over = sync.OnceFunc(over)
	defer over()
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer quiet(channel)
	ctx, kill := context.WithCancel(context.Background()) //nolint:forbidigo // a server for tests only
	defer kill()
	ended := make(chan io.Closer, 1) // the input of a command whose client ends it
	for {
		var r *ssh.Request
		select {
		case r = <-requests:
		case input := <-ended:
			if len(requests) > 0 { // what the client asked for before comes first
				ended <- input
			} else if ctx.Err() == nil { // else the command ends before its input
				quiet(input)
			}
			continue
		}
		if r == nil {
			return
		}
		if s.Seen != nil {
			s.Seen(r.Type)
		}
		if ends {
			return
		}
		if r.WantReply && r.Reply(r.Type != s.Refuses, nil) != nil {
			return
		}
		command := s.Shell
		switch r.Type {
		case s.Refuses:
			continue
		case "exec":
			command = string(r.Payload[4:])
		case "shell":
		case "signal":
			kill()
			continue
		default:
			continue
		}
		running.Go(func() {
			s.run(ctx, channel, command, ended)
			over()
			quiet(channel)
		})
	}
}

// run hands the command to the login shell, as a real server does. Once the client has ended its input, that is handed to ended.
func (s Server) run(ctx context.Context, channel ssh.Channel, command string, ended chan<- io.Closer) {
	login := s.Login
	if login == nil {
		login = []string{"/bin/sh", "-c"}
	}
	cmd := exec.CommandContext(ctx, login[0], append(slices.Clone(login[1:]), command)...) //nolint:forbidigo // as above: for tests only
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	cmd.WaitDelay = time.Second // after which nobody waits for the children of a command that was ended
	if cmd.Dir = s.Home; s.Home != "" {
		cmd.Env = append(os.Environ(), "HOME="+s.Home) //nolint:forbidigo // as above
	}
	input, err := cmd.StdinPipe()
	if err != nil {
		return
	}
	go func() {
		if _, err := io.Copy(input, channel); err == nil {
			ended <- input
		}
	}()
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil || !errors.As(err, &exit) && cmd.ProcessState != nil:
		report(channel, "exit-status", binary.BigEndian.AppendUint32(nil, uint32(cmd.ProcessState.ExitCode())))
	case exit != nil && !exit.Exited():
		reportSignal(channel, signalName(exit.String()))
	case exit != nil:
		report(channel, "exit-status", binary.BigEndian.AppendUint32(nil, uint32(exit.ExitCode())))
	default:
		report(channel, "exit-status", binary.BigEndian.AppendUint32(nil, 127))
	}
}

// signalName returns SSH's name of a signal from the words for the end of a process.
func signalName(words string) string {
	if strings.Contains(words, "terminated") {
		return string(ssh.SIGTERM)
	}
	return string(ssh.SIGKILL)
}

func reportSignal(channel ssh.Channel, name string) {
	report(channel, "exit-signal", ssh.Marshal(struct {
		Signal  string
		Dumped  bool
		Message string
		Lang    string
	}{Signal: name}))
}

func report(channel ssh.Channel, request string, payload []byte) {
	_, _ = channel.SendRequest(request, false, payload) //nolint:errcheck // the client sees what is missing
}

// quiet closes what the other side may have closed already.
func quiet(c io.Closer) { _ = c.Close() } //nolint:errcheck // see above
