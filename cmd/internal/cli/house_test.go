package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/cmd/internal/cli"
	"vmctl/providers"
)

// house is a folder of files, a data directory and a host, on which commands run
// one after the other.
type house struct {
	t        *testing.T
	dir      string
	home     string
	memory   *memory
	environ  []string
	stdin    io.Reader
	tty      bool
	terminal cli.Terminal
	random   random
	engines  bool   // there are engines and what is inside of them, beside the types of the memory
	builtIn  bool   // the systems are vmctl's own, and not the memory
	platform string // of the build
	program  string // vmctl's own; "": it is not known
}

const small = `
vm "dev" {
  cpus   = 1
  memory = "256MiB"

  boot {
    kernel = "vmlinuz"
  }
}

output "port" {
  value = vm.dev.ssh_port
}
`

const withID = `
vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}
`

// newHouse makes a house whose files are sources, main.vmctl.hcl being the first.
func newHouse(t *testing.T, source string) *house {
	t.Helper()
	home, err := os.MkdirTemp("", "h") //nolint:usetesting // the path of t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	h := &house{t: t, dir: t.TempDir(), home: home, memory: newMemory(), platform: "linux/amd64"}
	h.write("main.vmctl.hcl", source)
	h.write("vmlinuz", "a kernel")
	return h
}

func (h *house) write(name, content string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) read(name string) string {
	h.t.Helper()
	content, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(content)
}

// replace changes text in the first file.
func (h *house) replace(old, with string) {
	h.t.Helper()
	text := h.read("main.vmctl.hcl")
	if !strings.Contains(text, old) {
		h.t.Fatalf("the file does not hold %q", old)
	}
	h.write("main.vmctl.hcl", strings.ReplaceAll(text, old, with))
}

// data returns the data directory.
func (h *house) data() string {
	return filepath.Join(h.home, ".local", "state", "vmctl", "demo-k7m2qd9x4r")
}

// ending holds the exit code and the output of a command.
type ending struct {
	t              *testing.T
	args           string
	code           int
	stdout, stderr string
}

func (h *house) run(args ...string) ending {
	h.t.Helper()
	return h.runIn(h.t.Context(), args...)
}

func (h *house) runIn(ctx context.Context, args ...string) ending {
	h.t.Helper()
	var stdout, stderr bytes.Buffer
	stdin := h.stdin
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	types := h.memory.types()
	if h.engines {
		types.Inside = engineTypes()
	}
	if h.builtIn {
		types = providers.Types{}
	}
	code := cli.Main(ctx, cli.Env{
		Args: args, Stdin: stdin, Stdout: &stdout, Stderr: &stderr,
		Terminal: cli.Terminal{In: h.tty, Out: h.terminal.Out, Size: h.terminal.Size},
		Environ:  append([]string{"HOME=" + h.home}, h.environ...),
		Dir:      h.dir, Program: h.program, UID: 1000, Now: noon, Rand: &h.random, Types: types,
		HomeOf: func(user string) string { return map[string]string{"me": h.home}[user] },
		Build:  cli.Build{Version: "0.1.0", Go: "go1.26", Platform: h.platform},
	})
	return ending{t: h.t, args: strings.Join(args, " "), code: code, stdout: stdout.String(), stderr: stderr.String()}
}

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// random replaces the source of random: it yields zeros, then ones, and so on.
type random struct {
	mu   sync.Mutex
	next byte
}

func (r *random) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range p {
		p[i] = r.next
	}
	r.next++
	return len(p), nil
}

// exits demands an exit code.
func (e ending) exits(code int) ending {
	e.t.Helper()
	if e.code != code {
		e.t.Fatalf("vmctl %s: exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", e.args, e.code, code, e.stdout, e.stderr)
	}
	return e
}

// says demands text on standard output.
func (e ending) says(texts ...string) ending {
	e.t.Helper()
	for _, text := range texts {
		if !strings.Contains(e.stdout, text) {
			e.t.Errorf("vmctl %s: standard output lacks %q:\n%s\nstderr:\n%s", e.args, text, e.stdout, e.stderr)
		}
	}
	return e
}

// warns demands text on standard error.
func (e ending) warns(texts ...string) ending {
	e.t.Helper()
	for _, text := range texts {
		if !strings.Contains(e.stderr, text) {
			e.t.Errorf("vmctl %s: standard error lacks %q:\n%s\nstdout:\n%s", e.args, text, e.stderr, e.stdout)
		}
	}
	return e
}

// silent demands that a text is in neither output.
func (e ending) silent(text string) {
	e.t.Helper()
	if strings.Contains(e.stdout+e.stderr, text) {
		e.t.Errorf("vmctl %s: says %q:\n%s\n%s", e.args, text, e.stdout, e.stderr)
	}
}

// acted demands what the host has done since the last call.
func (h *house) acted(want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.memory.acted); diff != "" {
		h.t.Errorf("the host did (-want +got):\n%s", diff)
	}
	h.memory.acted = nil
}
