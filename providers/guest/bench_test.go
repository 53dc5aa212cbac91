//go:build unix

package guest_test

import (
	"testing"

	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx/sshtest"
	"vmctl/providers"
	"vmctl/providers/guest"
)

// BenchmarkRun runs a command over a connection that is open: in a bare session, and as a guest runs it, with its arguments,
// environment, folder and outputs. The guest may take 5 ms more.
func BenchmarkRun(b *testing.B) {
	s := serve(b, sshtest.Server{MaxSessions: 10})
	b.Run("bare session", func(b *testing.B) {
		client, err := s.target.Connect(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close() //nolint:errcheck // it ends with the server
		for b.Loop() {
			run(b, client)
		}
	})
	b.Run("guest", func(b *testing.B) {
		g := s.enter(b, guest.Keepalive{})
		for b.Loop() {
			if o, err := g.Run(b.Context(), providers.Command{Args: []string{"true"}}); err != nil || o.Status != 0 {
				b.Fatalf("status %d, %v", o.Status, err)
			}
		}
	})
}

func run(b *testing.B, client *ssh.Client) {
	b.Helper()
	session, err := client.NewSession()
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close() //nolint:errcheck // it has ended
	if err := session.Run("true"); err != nil {
		b.Fatal(err)
	}
}
