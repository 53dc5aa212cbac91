package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vmctl/providers"
)

// row A58: init is idempotent, and what needs it says so
func TestInit(t *testing.T) {
	h := newHouse(t, small)
	for _, command := range [][]string{{"plan"}, {"apply", "--auto-approve"}, {"destroy"}, {"status"}, {"show", "dev"}, {"output"}, {"vm", "stop", "dev"}} {
		h.run(command...).exits(3).warns("has no id", "vmctl init")
	}
	h.run("vm", "exec", "dev", "true").exits(255).warns("vmctl init")
	h.run("doctor").exits(1).says("the files have no id yet", "next: vmctl init")
	h.run("init", "--project=demo").exits(0).says("Wrote project demo with the id aaaaaaaaaa into vmctl.vmctl.hcl.", "Commit that file")
	written := h.read("vmctl.vmctl.hcl")
	h.run("init").exits(0).says("Project demo has the id aaaaaaaaaa already, in vmctl.vmctl.hcl. Nothing was changed.")
	h.run("init", "--project=other").exits(3).warns(`names the project "demo" already, not "other"`)
	if again := h.read("vmctl.vmctl.hcl"); again != written {
		t.Errorf("init changed the file from\n%s\nto\n%s", written, again)
	}
	h.run("plan").exits(0)
}

func TestInitNamesTheProjectAfterTheFolder(t *testing.T) {
	for folder, project := range map[string]string{
		"My Project!": "my-project", "--": "project", "über": "ber", strings.Repeat("x", 40): strings.Repeat("x", 31), "a.b_c": "a-b-c",
	} {
		h := newHouse(t, small)
		dir := filepath.Join(h.dir, folder)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a.vmctl.hcl"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		h.run("-C", folder, "init").exits(0).says("Wrote project " + project + " ")
	}
	newHouse(t, small).run("init", "--project=No Good").exits(3).warns("--project=no-good")
}

func TestValidate(t *testing.T) {
	newHouse(t, small).run("validate").exits(0).says("The files are valid: 1 resource.")
	h := newHouse(t, "vm \"dev\" {\n  memory = \"8G\"\n  cpu = 1\n  boot {\n    kernel = \"vmlinuz\"\n  }\n}\n")
	// row A35
	h.run("validate").exits(3).warns("on main.vmctl.hcl line 2", "8GiB", "on main.vmctl.hcl line 3", "cpus")
}

func TestFmt(t *testing.T) {
	h := newHouse(t, "vm \"dev\" {\ncpus=1 # one\n}\n")
	h.run("fmt", "--check").exits(3).says("main.vmctl.hcl")
	h.run("fmt").exits(0).says("main.vmctl.hcl")
	if got, want := h.read("main.vmctl.hcl"), "vm \"dev\" {\n  cpus = 1 # one\n}\n"; got != want {
		t.Errorf("formatted %q, want %q", got, want)
	}
	h.run("fmt", "--check").exits(0).silent("main")
	h.write("main.vmctl.hcl", "vm {{")
	h.run("fmt").exits(3).warns("main.vmctl.hcl")
}

func TestVersion(t *testing.T) {
	newHouse(t, "").run("version").exits(0).says("vmctl 0.1.0 (go1.26, linux/amd64)")
}

func TestCompletion(t *testing.T) {
	h := newHouse(t, "")
	for shell, text := range map[string]string{"bash": "__start_vmctl", "zsh": "#compdef vmctl", "fish": "complete -c vmctl", "powershell": "Register-ArgumentCompleter"} {
		h.run("completion", shell).exits(0).says(text)
	}
	h.run("completion", "tcsh").exits(3).warns("the shells are bash, zsh, fish and powershell")
}

func TestUsage(t *testing.T) {
	h := newHouse(t, withID+small)
	for _, test := range []struct {
		args  string
		warns []string
	}{
		{"plam", []string{`unknown command "plam" for "vmctl"`, "did you mean vmctl plan?"}},
		{"vm sart", []string{`unknown command "sart" for "vmctl vm"`, "did you mean vmctl vm start?"}},
		{"plan -json", []string{"unknown flag -json", "did you mean --json?"}},
		{"plan -target=vm.dev", []string{"did you mean --target?"}},
		{"plan --nonsense", []string{"unknown flag: --nonsense", "vmctl plan --help"}},
		{"plan -x", []string{"unknown shorthand flag: 'x' in -x"}},
		{"plan surplus", []string{`vmctl plan takes no argument, and got "surplus"`}},
		{"show", []string{"vmctl show needs the address of a resource"}},
		{"show a b", []string{`got "b" beyond that`}},
		{"vm exec dev", []string{"vmctl vm exec needs the name of a VM and a command"}},
		{"apply --parallelism=0", []string{"it has to be at least 1"}},
		{"apply --lock-timeout=soon", []string{"--lock-timeout"}},
		{"output --raw", []string{"--raw needs the name of an output"}},
		{"plan --env=Staging", []string{`read --env "Staging"`}},
		{"plan --var=memory", []string{"memory"}},
	} {
		code := 3
		h.run(strings.Fields(test.args)...).exits(code).warns(test.warns...)
	}
	h.run().exits(0).says("Usage:", "vmctl init, vmctl plan, vmctl apply")
}

// row L41: every level is accepted everywhere, and an unknown one is reported
func TestLogLevels(t *testing.T) {
	levels := []string{"trace", "debug", "info", "warn", "error", "fatal"}
	record := regexp.MustCompile(`(?m)^time=2026-03-01T12:00:00.000Z level=([A-Z]+) msg=`)
	for i, level := range levels {
		h := newHouse(t, withID+small)
		h.memory.fail["wait_ssh vm.dev"] = brokenStart()
		h.environ = []string{"VMCTL_LOG=" + level}
		e := h.run("apply", "--auto-approve").exits(1)
		shown := map[string]bool{}
		for _, m := range record.FindAllStringSubmatch(e.stderr, -1) {
			shown[strings.ToLower(m[1])] = true
		}
		for j, other := range levels {
			want := j >= i && other != "warn" && other != "fatal" // nothing of that kind happens
			if shown[other] != want {
				t.Errorf("VMCTL_LOG=%s: a record of level %s is shown: %v, want %v\n%s", level, other, shown[other], want, e.stderr)
			}
		}
	}
	h := newHouse(t, withID+small)
	h.run("plan", "--log-level=DEBUG").exits(0).warns("level=DEBUG")
	h.run("plan").exits(0).silent("level=")
	for _, command := range []string{"version", "validate", "plan", "apply", "status", "fmt"} {
		h.environ = nil
		h.run(command, "--log-level=foo").exits(3).warns(`unknown log level "foo"`, "the levels are trace, debug, info, warn, error, fatal")
		h.environ = []string{"VMCTL_LOG=foo"}
		h.run(command).exits(3).warns("read VMCTL_LOG", "the levels are trace, debug, info, warn, error, fatal")
	}
}

func TestDataDirectory(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	info, err := os.Stat(h.data())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the data directory has mode %o, want 700", info.Mode().Perm())
	}
	long := "/" + strings.Repeat("x", 90)
	for _, set := range []func(){
		func() { h.environ = []string{"XDG_STATE_HOME=" + long} },
		func() { h.environ = []string{"VMCTL_DATA_DIR=" + long} },
		func() { h.environ = []string{"HOME=" + long} },
	} {
		set()
		h.run("plan").exits(3).warns("its name is too long for the sockets inside", "and the system allows 107", "--data-dir=DIR")
	}
	h.environ = nil
	h.run("plan", "--data-dir="+long).exits(3)
	h.environ = []string{"HOME=", "XDG_STATE_HOME=relative"}
	h.run("plan").exits(3).warns("neither HOME nor XDG_STATE_HOME names a folder")
	h.environ = []string{"VMCTL_DATA_DIR=" + filepath.Join(h.home, "d")}
	h.run("plan", "--detailed-exitcode").exits(2).says("1 to adopt")
	h.run("plan", "--data-dir="+h.data(), "--detailed-exitcode").exits(0)
}

func TestEnvIsASecondInstance(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	h.run("apply", "--auto-approve", "--env=test").exits(0).says("1 to create")
	if h.memory.machine("demo.dev") == nil || len(h.memory.machines) != 2 {
		t.Errorf("the host has %d machines, want two", len(h.memory.machines))
	}
	h.run("plan", "--env=test", "--detailed-exitcode").exits(0)
	h.run("plan", "--env=test", "--data-dir="+h.data()).exits(5).warns("belongs to project")
}

// row J44: a corrupt state is an error, and stays as it is
func TestCorruptState(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	h.run("vm", "stop", "dev").exits(0)
	file := filepath.Join(h.data(), "state.json")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h.corrupt(string(whole[:len(whole)/2]))
	for _, command := range []string{"plan", "apply", "destroy", "status", "output"} {
		h.run(command).exits(5).warns("state.json is corrupt", "state.json.backup").silent("Plan")
	}
	h.run("doctor").exits(1).says("state.json is corrupt")
	after, err := os.ReadFile(file)
	if err != nil || string(after) != string(whole[:len(whole)/2]) {
		t.Errorf("the corrupt state was touched: %v", err)
	}
	h.corrupt(`{"format": 99}`)
	h.run("plan").exits(5)
}

// row L60: paths with spaces and quotes work everywhere
func TestPathsWithSpaces(t *testing.T) {
	h := newHouse(t, "")
	dir := filepath.Join(h.dir, `it's "a" $dir`)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"main.vmctl.hcl": small, "vmlinuz": "kernel"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.run("-C", dir, "init").exits(0)
	h.run("-C", dir, "fmt").exits(0)
	h.run("-C", dir, "validate").exits(0)
	h.run("-C", dir, "plan", "--data-dir", filepath.Join(h.home, "a b")).exits(0).says("Next: vmctl apply -C '", `it'\''s "a" $dir' '--data-dir=`)
	h.run("-C", dir, "apply", "--auto-approve").exits(0)
	h.run("-C", dir, "status").exits(0)
	h.run("-C", dir, "destroy", "--auto-approve").exits(0)
}

func TestOutput(t *testing.T) {
	h := newHouse(t, withID+small+"\noutput \"name\" {\n  value = \"a b\"\n}\n")
	h.run("output", "port").exits(1).warns("it is not known before what it refers to exists")
	h.run("output").exits(0).says("port = (not known yet)", "name = a b")
	h.run("apply", "--auto-approve").exits(0)
	h.run("output").exits(0).says("port = 1")
	if e := h.run("output", "name", "--raw").exits(0); e.stdout != "a b" {
		t.Errorf("raw output is %q", e.stdout)
	}
	h.run("output", "nome").exits(3).warns("the outputs are name, port")
}

func TestVMCommands(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("vm", "start", "dev").exits(3).says("1 to create").warns("standard input is no terminal", "vmctl vm start --auto-approve dev")
	h.run("apply", "--auto-approve").exits(0)
	h.acted("define vm.dev", "start vm.dev", "wait_ssh vm.dev")
	h.run("vm", "stop", "dev").exits(0).says("Stop vm.dev: 1 to stop.", "vm.dev: stopped", "(graceful)").warns("the next apply starts it again")
	h.acted("stop vm.dev")
	h.run("vm", "stop", "vm.dev").exits(0).says("vm.dev is stopped already.").warns("the next apply starts it again")
	h.run("plan", "--detailed-exitcode").exits(2).says("1 to start")
	h.run("vm", "start", "dev").exits(0).silent("the next apply")
	h.acted("start vm.dev", "wait_ssh vm.dev")
	h.run("vm", "restart", "dev").exits(0)
	h.acted("stop vm.dev", "start vm.dev", "wait_ssh vm.dev")
	h.run("vm", "stop", "nothing").exits(3).warns(`"nothing" is no resource of the spec.`)

	// What was not asked for by name is asked about.
	h.replace("256MiB", "512MiB")
	h.run("vm", "restart", "dev").exits(3).warns("ask for consent")
	h.acted()

	h.replace("cpus   = 1", "running = false")
	h.run("vm", "start", "dev", "--auto-approve").exits(0).warns("the next apply stops it again")
}

// row A36: a stop that does not end is never called one
func TestStopThatFails(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	h.memory.hold["stop vm.dev"] = make(chan struct{})
	h.run("vm", "stop", "dev", "--timeout=10ms").exits(4).warns("stop: no answer in time", "1 failed").silent("stopped in")
	h.run("status").exits(0).says("vm.dev    running")
}

// row L53: a VM that does not run is not entered, and stays as it is
func TestInsideAStoppedVM(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("vm", "exec", "dev", "--", "true").exits(255).warns("vm.dev is not running: it does not exist", "vmctl apply")
	h.run("apply", "--auto-approve").exits(0)
	h.run("vm", "stop", "dev").exits(0)
	h.memory.acted = nil
	h.run("vm", "exec", "dev", "--", "true").exits(255).warns("vm.dev is not running: it is stopped", "vmctl vm start vm.dev")
	h.stdinFile()
	h.run("vm", "shell", "dev").exits(255).warns("vm.dev is not running")
	h.run("vm", "ssh-config", "dev").exits(1).warns("vm.dev is not running")
	h.acted()
	h.run("status").exits(0).says("vm.dev    stopped")
}

// stdinFile gives commands a file to read from.
func (h *house) stdinFile() {
	h.t.Helper()
	file, err := os.Open(os.DevNull)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := file.Close(); err != nil {
			h.t.Error(err)
		}
	})
	h.stdin = file
}

func TestSSHConfig(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	h.run("vm", "ssh-config", "dev").exits(0).says("Host vm.dev\n", "HostName 127.0.0.1", "User root", "StrictHostKeyChecking yes",
		`IdentityFile "`+filepath.Join(h.data(), "keys", "demo.dev", "id_ed25519")+`"`)
}

// rows A51, L46: the run state and what is above it are told apart, and looking
// changes nothing
func TestStatus(t *testing.T) {
	h := newHouse(t, withID+small+`
vm "off" {
  running = false
  boot {
    kernel = "vmlinuz"
  }
}

vm "paused" {
  boot {
    kernel = "vmlinuz"
  }
}

vm "lost" {
  boot {
    kernel = "vmlinuz"
  }
}

vm "veiled" {
  boot {
    kernel = "vmlinuz"
  }
}
`)
	h.run("apply", "--auto-approve").exits(0)
	h.replace(`output "port"`, "vm \"new\" {\n  boot {\n    kernel = \"vmlinuz\"\n  }\n}\n\noutput \"port\"")
	h.memory.machine("demo.paused").state = providers.StatePaused
	h.memory.unknown["demo.veiled"] = "the daemon does not answer"
	for id, o := range h.memory.machines {
		if o.name == "demo.lost" {
			delete(h.memory.machines, id)
		}
	}
	before, err := os.Stat(filepath.Join(h.data(), "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	h.memory.acted = nil
	golden(t, "status", strings.ReplaceAll(h.run("status").exits(0).stdout, h.home, "HOME"))
	golden(t, "status-json", strings.ReplaceAll(h.run("status", "--json").exits(0).stdout, h.home, "HOME"))
	h.acted()
	after, err := os.Stat(filepath.Join(h.data(), "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("looking changed the state: %v, then %v", before.ModTime(), after.ModTime())
	}
}

// row A57: a name is looked up exactly
func TestNamesAreExact(t *testing.T) {
	h := newHouse(t, withID+"vm \"axb\" {\n  boot {\n    kernel = \"vmlinuz\"\n  }\n}\n")
	h.run("show", "a.b").exits(3).warns(`"a.b" is no resource`)
	h.run("show", "axb").exits(0).says("vm.axb")
}

// rows E22, X17: the same world gives the same bytes
func TestPlansAreTheSame(t *testing.T) {
	h := newHouse(t, withID+`
vm "web" {
  for_each = toset(["d", "a", "c", "b"])
  boot {
    kernel = "vmlinuz"
  }
}
`)
	text, document := h.run("plan").exits(0).stdout, h.run("plan", "--json").exits(0).stdout
	for range 50 {
		if again := h.run("plan").exits(0).stdout; again != text {
			t.Fatalf("the same plan differs:\n%s\n%s", text, again)
		}
		if again := h.run("plan", "--json").exits(0).stdout; again != document {
			t.Fatalf("the same plan differs:\n%s\n%s", document, again)
		}
	}
}

func TestTwoVMsOfOneName(t *testing.T) {
	// row L49
	h := newHouse(t, withID+"vm \"a\" {\n  name = \"same\"\n  boot {\n    kernel = \"vmlinuz\"\n  }\n}\n"+
		"vm \"b\" {\n  name = \"same\"\n  boot {\n    kernel = \"vmlinuz\"\n  }\n}\n")
	h.run("validate").exits(3).warns("vm.a", "vm.b", "same")
	h.run("apply", "--auto-approve").exits(3)
	h.acted()
}

// row L50: what is to be booted is checked before anything is planned
func TestUnreadableKernel(t *testing.T) {
	h := newHouse(t, withID+small)
	if err := os.Remove(filepath.Join(h.dir, "vmlinuz")); err != nil {
		t.Fatal(err)
	}
	h.run("apply", "--auto-approve").exits(3).warns("on main.vmctl.hcl line", "vmlinuz")
	h.acted()
}

func TestBadProviderSettings(t *testing.T) {
	h := newHouse(t, withID+"provider \"libvirt\" \"default\" {\n  uri = \"bad:\"\n}\n"+small)
	h.run("plan").exits(3).warns("open provider.libvirt.default", `uri = "bad:" is no connection`)
}
