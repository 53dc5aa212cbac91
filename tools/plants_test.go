package tools_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// plant is one line of code that goes into a file of its own.
type plant struct {
	rule   string // who must report it: a list of depguard, the message of a forbidigo pattern, a linter; "" for nobody
	dir    string
	imp    string // what the file imports
	code   string // a statement; without one, the import is the offence
	inTest bool   // the file is a test
}

// annotated tells whether the plant says why it drops an error: it may be reported for neither then.
func (p plant) annotated() bool { return strings.Contains(p.code, "//nolint:") }

// No import here may make a cycle: what cannot be loaded is not linted.
func plants() []plant {
	const (
		screen = "only cmd/internal/view writes to the terminal, through its writer"
		signal = "only internal/process signals"
		start  = "only internal/run and internal/process start programs, git too"
		exit   = "return an error; only main exits"
		stream = "take a writer; only main knows the process's streams"
		env    = "take it as an argument; the environment enters in cmd/internal/cli"
		ctx    = "take a context; only main makes one"
	)
	return []plant{
		{rule: "spec", dir: "spec", imp: "vmctl/providers/lima"},
		{dir: "spec", imp: "vmctl/internal/atomicfile"},
		{dir: "spec", imp: "github.com/hashicorp/hcl/v2/hclsyntax"},

		{rule: "internal", dir: "internal/sshx", imp: "vmctl/spec"},
		{dir: "internal/sshx", imp: "vmctl/internal/shellword"},

		{rule: "condition", dir: "condition", imp: "vmctl/spec"},
		{rule: "condition", dir: "condition", imp: "vmctl/internal/clock"},

		{rule: "state", dir: "state", imp: "vmctl/providers"},
		{dir: "state", imp: "vmctl/condition"},
		{dir: "state", imp: "vmctl/spec"},
		{dir: "state", imp: "vmctl/internal/lockfile"},

		{rule: "storetest", dir: "state/storetest", imp: "vmctl/internal/lockfile"},
		{dir: "state/storetest", imp: "vmctl/state"},
		{rule: "busy", dir: "busy", imp: "vmctl/providers"},
		{dir: "busy", imp: "vmctl/spec"},
		{dir: "busy", imp: "vmctl/state"},
		{dir: "busy", imp: "vmctl/internal/lockfile"},
		{rule: "planner", dir: "planner", imp: "vmctl/busy"},
		{rule: "executor", dir: "executor", imp: "vmctl/busy"},
		{dir: "cmd/internal/cli", imp: "vmctl/busy"},

		{rule: "providers", dir: "providers", imp: "vmctl/internal/process"},
		{dir: "providers", imp: "vmctl/spec"},
		{dir: "providers", imp: "vmctl/condition"},

		{rule: "provider", dir: "providers/libvirt", imp: "vmctl/state"},
		{rule: "provider", dir: "providers/libvirt", imp: "vmctl/providers/lima"},
		{rule: "provider", dir: "providers/stop", imp: "vmctl/providers/sim"},
		{rule: "provider", dir: "providers/provision", imp: "vmctl/state"},
		{rule: "provider", dir: "providers/provision", imp: "vmctl/providers/sim"},
		{rule: "provider", dir: "providers/keptlog", imp: "vmctl/providers/lima"},
		{dir: "providers/libvirt", imp: "vmctl/spec"},
		{dir: "providers/libvirt", imp: "vmctl/providers"},
		{dir: "providers/libvirt", imp: "vmctl/providers/guard"},
		{dir: "providers/libvirt", imp: "vmctl/providers/guest"},
		{dir: "providers/libvirt", imp: "vmctl/providers/machine"},
		{dir: "providers/libvirt", imp: "vmctl/providers/stop"},
		{dir: "providers/libvirt", imp: "vmctl/internal/process"},

		{rule: "provider", dir: "providers/libvirt", imp: "vmctl/providers/providertest/box"},
		{rule: "suite", dir: "providers/providertest", imp: "vmctl/providers/sim"},
		{dir: "providers/providertest", imp: "vmctl/providers/providertest/box"},

		{rule: "planner", dir: "planner", imp: "vmctl/providers/libvirt"},
		{rule: "planner", dir: "planner", imp: "vmctl/internal/process"},
		{dir: "planner", imp: "vmctl/spec"},
		{dir: "planner", imp: "vmctl/internal/ctyread"},
		{dir: "planner", imp: "vmctl/internal/ippool"},
		{dir: "planner", imp: "vmctl/internal/shellword"},
		{dir: "planner", imp: "vmctl/state"},
		{dir: "planner", imp: "vmctl/providers"},
		{dir: "planner", imp: "vmctl/providers/sim", inTest: true},

		{rule: "executor", dir: "executor", imp: "vmctl/providers/libvirt"},
		{rule: "executor", dir: "executor", imp: "vmctl/internal/process"},
		{dir: "executor", imp: "vmctl/spec"},
		{dir: "executor", imp: "vmctl/state"},
		{dir: "executor", imp: "vmctl/planner"},
		{dir: "executor", imp: "vmctl/providers"},

		{rule: "search", dir: "search", imp: "vmctl/providers/sim"},
		{dir: "search", imp: "vmctl/executor"},
		{dir: "search/depot", imp: "net/http"},
		{dir: "providers/sim", imp: "vmctl/providers/machine"},
		{rule: "view", dir: "cmd/internal/view", imp: "vmctl/providers/libvirt"},
		{rule: "view", dir: "cmd/internal/view", imp: "vmctl/internal/process"},
		{dir: "cmd/internal/view", imp: "vmctl/internal/shellword"},
		{dir: "cmd/internal/view", imp: "vmctl/planner"},
		{dir: "cmd/internal/view", imp: "vmctl/executor"},
		{dir: "cmd/internal/view/graph", imp: "vmctl/cmd/internal/view"},
		{rule: "view", dir: "cmd/internal/view/graph", imp: "vmctl/cmd/internal/cli"},

		{rule: "vmctl-lima", dir: "cmd/vmctl-lima", imp: "vmctl/internal/atomicfile"},
		{dir: "cmd/vmctl-lima", imp: "github.com/lima-vm/lima/v2/pkg/store"},
		{rule: "lima", dir: "providers/lima", imp: "github.com/lima-vm/lima/v2/pkg/store"},
		{rule: "lima", dir: "providers/lima", imp: "github.com/lima-vm/lima/v2/pkg/store", inTest: true},
		{rule: "lima", dir: "cmd/internal/cli", imp: "github.com/lima-vm/lima/v2/pkg/store"},
		{dir: "cmd/vmctl-lima", imp: "os/exec"},
		{dir: "cmd/vmctl-lima", imp: "net/http"},

		{rule: "main", dir: "cmd/vmctl", imp: "vmctl/planner"},
		{dir: "cmd/vmctl", imp: "vmctl/cmd/internal/cli"},
		{dir: "cmd/internal/cli", imp: "vmctl/providers/libvirt"},
		{dir: "cmd/internal/cli", imp: "vmctl/state"},

		{rule: "exec", dir: "planner", imp: "os/exec"},
		{rule: "exec", dir: "cmd/internal/cli", imp: "os/exec"},
		{dir: "internal/run", imp: "os/exec"},
		{dir: "internal/process", imp: "os/exec"},
		{dir: "executor", imp: "os/exec", inTest: true},

		{rule: "run", dir: "providers/libvirt", imp: "vmctl/internal/run"},
		{rule: "run", dir: "internal/sshx", imp: "vmctl/internal/run"},
		{dir: "cmd/internal/cli", imp: "vmctl/internal/run"},

		{rule: "hcl", dir: "state", imp: "github.com/hashicorp/hcl/v2/hclsyntax"},
		{dir: "planner", imp: "github.com/hashicorp/hcl/v2"},

		{rule: "internal", dir: "internal/fetch", imp: "vmctl/providers"},
		{dir: "internal/fetch", imp: "vmctl/internal/lockfile"},
		{rule: "http", dir: "providers/libvirt", imp: "net/http"},
		{dir: "internal/fetch", imp: "net/http"},
		{dir: "providers/engine", imp: "net/http"},
		{rule: "docker", dir: "providers/libvirt", imp: "github.com/moby/moby/client"},
		{dir: "providers/engine", imp: "github.com/moby/moby/client"},
		{dir: "internal/fetch", imp: "net/http/httptest", inTest: true},
		{dir: "providers/libvirt", imp: "net/url"},

		{rule: "terraform", dir: "cmd/internal/cli", imp: "github.com/hashicorp/terraform-exec/tfexec"},
		{dir: "providers/terraform", imp: "github.com/hashicorp/terraform-exec/tfexec"},

		{rule: "diskfs", dir: "providers/libvirt", imp: "github.com/diskfs/go-diskfs/filesystem/iso9660"},
		{dir: "internal/nocloud", imp: "github.com/diskfs/go-diskfs/filesystem/iso9660"},
		{dir: "providers/libvirt", imp: "vmctl/internal/qcow2"},

		{rule: "yaml", dir: "providers/libvirt", imp: "gopkg.in/yaml.v3"},
		{dir: "internal/yamltext", imp: "gopkg.in/yaml.v3"},

		{rule: "libraries", dir: "executor", imp: "github.com/pkg/errors"},
		{rule: "libraries", dir: "executor", imp: "math/rand"},
		{rule: "libraries", dir: "executor", imp: "github.com/stretchr/testify/assert", inTest: true},
		{dir: "executor", imp: "math/rand/v2"},

		{rule: screen, dir: "planner", imp: "fmt", code: `fmt.Print("x")`},
		{rule: screen, dir: "planner", imp: "fmt", code: `fmt.Printf("x")`},
		{rule: screen, dir: "planner", imp: "fmt", code: `fmt.Println("x")`},
		{rule: screen, dir: "planner", code: `print("x")`},
		{rule: screen, dir: "planner", code: `println("x")`},
		{dir: "planner", imp: "fmt", code: `_ = fmt.Sprint("x")`},

		{rule: signal, dir: "providers/stop", imp: "os", code: `_ = (&os.Process{}).Kill()`},
		{rule: signal, dir: "providers/stop", imp: "os", code: `var p *os.Process; _ = p.Signal(os.Interrupt)`},
		{rule: signal, dir: "providers/stop", imp: "syscall", code: `_ = syscall.Kill(1, 0)`},
		{rule: signal, dir: "providers/stop", imp: "golang.org/x/sys/unix", code: `_ = unix.Kill(1, 0)`},
		{rule: signal, dir: "providers/sim", imp: "os", code: `_, _ = os.FindProcess(1)`},
		{rule: signal, dir: "providers/sim", imp: "golang.org/x/sys/unix", code: `_ = unix.Tgkill(1, 1, 0)`},
		{rule: signal, dir: "cmd/internal/cli", imp: "golang.org/x/sys/unix", code: `_ = unix.PidfdSendSignal(1, 0, nil, 0)`},
		{rule: signal, dir: "cmd/internal/cli", imp: "golang.org/x/sys/windows", code: `_ = windows.TerminateProcess(1, 0)`},
		{dir: "internal/process", imp: "golang.org/x/sys/unix", code: `_ = unix.Kill(1, 0)`},
		{dir: "internal/process", imp: "golang.org/x/sys/windows", code: `_ = windows.TerminateProcess(1, 0)`},

		{rule: start, dir: "providers/libvirt", imp: "os/exec", code: `_ = exec.Command("git", "status")`},
		{rule: start, dir: "cmd/internal/cli", imp: "os/exec", code: `_ = exec.CommandContext(nil, "virsh", "list")`},
		{rule: start, dir: "providers/sim", imp: "os", code: `_, _ = os.StartProcess("git", nil, nil)`},
		{rule: start, dir: "providers/sim", imp: "syscall", code: `_ = syscall.Exec("git", nil, nil)`},
		{rule: start, dir: "state", imp: "golang.org/x/sys/unix", code: `_ = unix.Exec("git", nil, nil)`},
		{dir: "internal/run", imp: "os/exec", code: `_ = exec.Command("git", "status")`},
		{dir: "internal/process", imp: "os", code: `_, _ = os.StartProcess("git", nil, nil)`},

		// row A31: an error is not dropped without a word, nor without a reason
		{rule: "errcheck", dir: "executor", imp: "os", code: `os.Remove("x")`},
		{rule: "errcheck", dir: "executor", imp: "os", code: `_ = os.Remove("x")`},
		{rule: "errcheck", dir: "executor", imp: "os", code: `f, _ := os.Open("x"); _ = f`},
		{rule: "errcheck", dir: "executor", imp: "os", code: `defer os.Remove("x")`},
		{rule: "nolintlint", dir: "executor", imp: "os", code: `_ = os.Remove("x") //nolint:errcheck`},
		{rule: "nolintlint", dir: "executor", imp: "os", code: `_ = os.Remove("x") //nolint // it may be gone`},
		{dir: "executor", imp: "os", code: `_ = os.Remove("x") //nolint:errcheck // it may be gone`},

		{rule: exit, dir: "cmd/internal/cli", imp: "os", code: `os.Exit(1)`},
		{dir: "cmd/vmctl", imp: "os", code: `os.Exit(1)`},

		{rule: stream, dir: "cmd/internal/cli", imp: "os", code: `_ = os.Stdin`},
		{rule: stream, dir: "cmd/internal/view", imp: "os", code: `_ = os.Stdout`},
		{rule: stream, dir: "executor", imp: "os", code: `_ = os.Stderr`},
		{dir: "cmd/vmctl", imp: "os", code: `_ = os.Stderr`},

		{rule: env, dir: "providers/libvirt", imp: "os", code: `_ = os.Getenv("X")`},
		{rule: env, dir: "providers/libvirt", imp: "os", code: `_, _ = os.LookupEnv("X")`},
		{rule: env, dir: "spec", imp: "os", code: `_ = os.Environ()`},
		{rule: env, dir: "state", imp: "os", code: `_ = os.ExpandEnv("X")`},
		{rule: env, dir: "state", imp: "os", code: `_, _ = os.UserHomeDir()`},
		{dir: "cmd/internal/cli", imp: "os", code: `_ = os.Getenv("X")`},

		{rule: ctx, dir: "executor", imp: "context", code: `_ = context.Background()`},
		{rule: ctx, dir: "cmd/internal/cli", imp: "context", code: `_ = context.TODO()`},
		{dir: "executor", imp: "context", code: `_ = context.WithoutCancel(nil)`},
		{dir: "cmd/vmctl", imp: "context", code: `_ = context.Background()`},
	}
}

// libraries are stand-ins for modules of others: module path, file, content.
var libraries = [][3]string{
	{"github.com/diskfs/go-diskfs", "filesystem/iso9660/iso9660.go", "package iso9660\n"},
	{"github.com/hashicorp/hcl/v2", "hcl.go", "package hcl\n"},
	{"github.com/hashicorp/hcl/v2", "hclsyntax/hclsyntax.go", "package hclsyntax\n"},
	{"github.com/hashicorp/terraform-exec", "tfexec/tfexec.go", "package tfexec\n"},
	{"github.com/lima-vm/lima/v2", "pkg/store/store.go", "package store\n"},
	{"github.com/pkg/errors", "errors.go", "package errors\n"},
	{"github.com/stretchr/testify", "assert/assert.go", "package assert\n"},
	{
		"golang.org/x/sys", "unix/unix.go", "package unix\n\nfunc Kill(pid, signal int) error { return nil }\n\n" +
			"func Tgkill(group, thread, signal int) error { return nil }\n\n" +
			"func PidfdSendSignal(fd, signal int, info *int, flags int) error { return nil }\n\n" +
			"func Exec(program string, args, env []string) error { return nil }\n",
	},
	{"golang.org/x/sys", "windows/windows.go", "package windows\n\nfunc TerminateProcess(process, status int) error { return nil }\n"},
}

const plantedLine = 5 // where a plant's offence stands in its file

// file names the file of plant number n.
func (p plant) file(n int) string {
	suffix := ".go"
	if p.inTest {
		suffix = "_test.go"
	}
	return fmt.Sprintf("%s/planted%02d%s", p.dir, n, suffix)
}

// source gives the file with the offence in line plantedLine.
func (p plant) source(n int) string {
	pkg := path.Base(p.dir)
	if strings.HasPrefix(p.dir, "cmd/vmctl") {
		pkg = "main"
	}
	if p.inTest {
		pkg += "_test"
	}
	switch {
	case p.code == "":
		return fmt.Sprintf("package %s\n\nimport (\n\t// planted\n\t_ %q\n)\n", pkg, p.imp)
	case p.imp == "":
		return fmt.Sprintf("package %s\n\n\n\nfunc planted%d() { %s\n}\n", pkg, n, p.code)
	default:
		return fmt.Sprintf("package %s\n\nimport %q\n\nfunc planted%d() { %s\n}\n", pkg, p.imp, n, p.code)
	}
}

// writeModule makes a module of the same name with all plants, and an empty package for each one that they are in or
// import.
func writeModule(t *testing.T, root string) {
	t.Helper()
	config, err := os.ReadFile("../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, ".golangci.yml", string(config))

	for i, p := range plants() {
		write(t, root, p.file(i), p.source(i))
		for _, dir := range []string{p.dir, strings.TrimPrefix(p.imp, "vmctl/")} {
			switch {
			case strings.HasPrefix(dir, "cmd/vmctl"):
				write(t, root, dir+"/doc.go", "package main\n\nfunc main() {}\n")
			case dir == p.dir || dir != p.imp:
				write(t, root, dir+"/doc.go", "package "+path.Base(dir)+"\n")
			}
		}
	}

	gomod := "module vmctl\n\ngo 1.26\n"
	for _, lib := range libraries {
		module, file, content := lib[0], lib[1], lib[2]
		write(t, root, "lib/"+module+"/go.mod", "module "+module+"\n")
		write(t, root, "lib/"+module+"/"+file, content)
		version := "v0.0.0"
		if strings.HasSuffix(module, "/v2") {
			version = "v2.0.0"
		}
		if !strings.Contains(gomod, module) {
			gomod += fmt.Sprintf("\nrequire %s %s\n\nreplace %[1]s => ./lib/%[1]s\n", module, version)
		}
	}
	write(t, root, "go.mod", gomod)
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
