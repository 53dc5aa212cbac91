package main

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	account "os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"vmctl/internal/process"
)

// The password needs an escape in an address: a connection with the plain one is refused by Terraform, which repeats the address.
const (
	pgPassword = "CANARYACCESS%zz"
	pgEscaped  = "CANARYACCESS%25zz"
)

// postgres is a server of PostgreSQL on a socket in a folder.
type postgres struct {
	t      *testing.T
	dir    string
	schema string

	mu       sync.Mutex
	attempts int        // to take a lock
	again    *sync.Cond // an attempt was made
}

// newPostgres starts a server. It refuses to run as root, and runs as nobody then.
func newPostgres(t *testing.T) *postgres {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		t.Fatalf("no PostgreSQL server (scripts/deps.sh test installs it): %v", err)
	}
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // the path of t.TempDir is too long for sockets, and closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte(pgPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(filepath.Dir(found[len(found)-1]), name), args...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
		return cmd
	}
	as := func(cmd *exec.Cmd) *exec.Cmd { return cmd }
	if os.Getuid() == 0 {
		nobody, err := account.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, gid := idNumber(t, nobody.Uid), idNumber(t, nobody.Gid)
		for _, path := range []string{dir, password} {
			if err := os.Chown(path, int(uid), int(gid)); err != nil {
				t.Fatal(err)
			}
		}
		as = func(cmd *exec.Cmd) *exec.Cmd {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
			return cmd
		}
	}
	made := as(run("initdb", "-D", dir+"/data", "-U", "vmctl", "--pwfile="+password, "-A", "scram-sha-256", "-E", "UTF8", "--no-locale", "--no-sync"))
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	server := as(run("postgres", "-D", dir+"/data", "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "log_statement=all"))
	said, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	log := bufio.NewReader(said)
	var read sync.WaitGroup
	t.Cleanup(func() {
		if err := server.Process.Signal(syscall.SIGQUIT); err != nil {
			t.Error(err)
		}
		read.Wait()
		_ = server.Wait() //nolint:errcheck // it was told to end at once
	})
	for all := ""; !strings.Contains(all, "ready to accept connections"); {
		line, err := log.ReadString('\n')
		all += line
		if err != nil {
			t.Fatalf("postgres: %v\n%s", err, all)
		}
	}
	p := &postgres{t: t, dir: dir, schema: "states"}
	p.again = sync.NewCond(&p.mu)
	read.Go(func() {
		for {
			line, err := log.ReadString('\n')
			if err != nil {
				return
			}
			if strings.Contains(line, "pg_try_advisory_lock") {
				p.mu.Lock()
				p.attempts++
				p.mu.Unlock()
				p.again.Broadcast()
			}
		}
	})
	return p
}

// hold runs a session that holds a lock of the server, which a statement takes, until it is released.
func (p *postgres) hold(statement string) (release func()) {
	p.t.Helper()
	session := p.psql()
	input, err := session.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	output, err := session.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := session.Start(); err != nil {
		p.t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		if err := input.Close(); err != nil {
			p.t.Error(err)
		}
		if err := session.Wait(); err != nil {
			p.t.Error(err)
		}
	})
	p.t.Cleanup(release)
	if _, err := io.WriteString(input, statement+"\n"); err != nil {
		p.t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || !strings.Contains(line, "locked") {
		p.t.Fatalf("%s: %v: it says %q", statement, err, line)
	}
	return release
}

func idNumber(t *testing.T, text string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// connection returns an address of the server.
func (p *postgres) connection(password string) string {
	return fmt.Sprintf("postgres://vmctl:%s@/postgres?host=%s&sslmode=disable", password, p.dir)
}

// psql returns a client that reads statements from its standard input.
func (p *postgres) psql() *exec.Cmd {
	cmd := exec.Command("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", p.connection(pgEscaped))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PGAPPNAME=somebody"}
	return cmd
}

// says returns the lines with which the server answers statements.
func (p *postgres) says(statements string) []string {
	p.t.Helper()
	cmd := p.psql()
	cmd.Stdin = strings.NewReader(statements)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", statements, err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// names lists the workspaces.
func (p *postgres) names() []string {
	p.t.Helper()
	return slices.DeleteFunc(p.says("SELECT name FROM "+p.schema+".states ORDER BY name;"), func(name string) bool { return name == "" })
}

// stateOfA returns the state of the one workspace of vm.a.
func (p *postgres) stateOfA() string {
	p.t.Helper()
	const part = "--a--"
	found := slices.DeleteFunc(p.names(), func(name string) bool { return !strings.Contains(name, part) })
	if len(found) != 1 {
		p.t.Fatalf("workspaces with %s: %v of %v", part, found, p.names())
	}
	return strings.Join(p.says("SELECT data FROM "+p.schema+".states WHERE name = '"+found[0]+"';"), "\n")
}

// quiet runs f, and demands that it changes no workspace.
func (p *postgres) quiet(f func()) {
	p.t.Helper()
	rows := "SELECT xmin, id, name, md5(data) FROM " + p.schema + ".states ORDER BY id;"
	before := p.says(rows)
	f()
	if after := p.says(rows); !slices.Equal(before, after) {
		p.t.Errorf("workspaces were %v, and are %v", before, after)
	}
}

// pgSpec has VMs that are all made at once.
const pgSpec = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}
variable "connection" {
  type      = string
  sensitive = true
}
provider "terraform" "cloud" {
  dir            = "infra"
  binary         = "./program"
  backend_config = { conn_str = var.connection, schema_name = "states" }
}
vm "a" {
  provider  = provider.terraform.cloud
  variables = { size = "one" }
  outputs   = { address = "vm_ip" }
  ssh {
    wait = false
  }
  lifecycle { on_change = { variables = "replace" } }
}
vm "b" {
  for_each  = { for n in ["1", "2", "3", "4"] : n => n }
  provider  = provider.terraform.cloud
  variables = { size = "b" }
  outputs   = { address = "vm_ip" }
  ssh {
    wait = false
  }
}
`

// pgSite is a site whose module keeps its states on a server of PostgreSQL.
type pgSite struct {
	*killed
	*postgres
}

func newPGSite(t *testing.T, program terraformProgram) *pgSite {
	t.Helper()
	s := &pgSite{killed: newKilled(t, program), postgres: newPostgres(t)}
	s.environ = []string{"VMCTL_VAR_connection=" + s.connection(pgEscaped)}
	s.write("infra/main.tf", "terraform {\n  backend \"pg\" {}\n}\n"+killedModule)
	s.write("main.vmctl.hcl", pgSpec)
	return s
}

// types runs what a user types, without a password in it.
func (s *pgSite) types(out, after string) string {
	s.killed.t.Helper()
	command, _, _ := strings.Cut(textAfter(out, after), "\n")
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "CHECKPOINT_DISABLE=1", "PG_CONN_STR=" + s.connection(pgEscaped), "PG_SCHEMA_NAME=states", "PGPASSWORD=" + pgPassword,
		"PROGRAM=" + s.terraform.path, "STANDIN=" + s.killed.dir,
	}
	said, err := cmd.CombinedOutput()
	if command == "" || err != nil {
		s.killed.t.Fatalf("%s: %v\n%s", command, err, said)
	}
	return string(said)
}

// The states of a module may be on a server of PostgreSQL. OpenTofu has a sample.
func TestTerraformPG(t *testing.T) {
	withReal(t, func(t *testing.T, program terraformProgram) {
		tests := map[string]func(*testing.T, terraformProgram){"life": testPGLife, "locked": testPGLocked, "killed": testPGKilled, "secret": testPGSecret}
		if program.tool == "OpenTofu" {
			delete(tests, "killed")
			delete(tests, "secret")
		}
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, program)
			})
		}
	})
}

// The VMs of a module have a row each on a server of PostgreSQL. All of them are made at once, though Terraform's backend fails
// while another process makes one. A plan and status write none; what is gone is not made anew before the user has let go of it,
// and the last destroy leaves no row.
func testPGLife(t *testing.T, program terraformProgram) {
	s := newPGSite(t, program)
	apply, plan := []string{"apply", "--auto-approve", "--parallelism=5"}, []string{"plan", "--detailed-exitcode"}
	s.run(2, plan...)
	if names := s.names(); len(names) > 0 {
		t.Errorf("a plan made %v", names)
	}
	s.run(0, apply...)
	if names := s.names(); len(names) != 5 {
		t.Errorf("workspaces %v, want one for each VM", names)
	}
	s.quiet(func() {
		s.demands(s.run(0, plan...), "No changes")
		s.demands(s.run(0, "status"), "running")
		s.demands(s.run(0, "plan", "--destroy"), "terraform: destroy terraform_data.vm")
	})
	s.write("main.vmctl.hcl", strings.Replace(pgSpec, `"one"`, `"two"`, 1))
	s.quiet(func() { s.demands(s.run(2, plan...), "terraform: replace terraform_data.vm") })
	s.run(0, apply...)
	if text := s.stateOfA(); !strings.Contains(text, `"two"`) {
		t.Errorf("the state of a is\n%s", text)
	}

	// A workspace that is gone.
	gone := s.stateOfA()
	s.says("DELETE FROM states.states WHERE name LIKE '%--a--%';")
	var out string
	s.quiet(func() {
		out = s.run(6, plan...)
		s.demands(out, "unknown vm.a: ", "the backend pg has no workspace of it any more")
		s.run(6, apply...)
	})
	s.initialise()
	s.types(out, "put its state of the last apply back: ")
	if text := s.stateOfA(); idOf(text) != idOf(gone) {
		t.Errorf("the state of a was\n%s\nand is\n%s", gone, text)
	}
	s.quiet(func() { s.demands(s.run(0, plan...), "No changes") })

	// A workspace whose VM nobody knows any more is found by its name.
	s.run(0, "state", "rm", "--force", "vm.a")
	s.quiet(func() { s.demands(s.run(2, plan...), "vm.a") })
	s.run(0, apply...)
	if text := s.stateOfA(); idOf(text) != idOf(gone) {
		t.Errorf("it was made anew:\n%s", text)
	}
	s.run(0, "destroy", "--auto-approve", "--target=vm.a")
	if names := s.names(); len(names) != 4 {
		t.Errorf("workspaces %v, want those of b", names)
	}
	s.run(0, "destroy", "--auto-approve", "--parallelism=5")
	if names := s.names(); len(names) > 0 {
		t.Errorf("left on the server: %v", names)
	}
	s.leaksNowhere()
}

// demands fails if an output lacks a text.
func (s *pgSite) demands(out string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			s.t.Errorf("no %q in\n%s", text, out)
		}
	}
}

// initialise initialises the module as its user does.
func (s *pgSite) initialise() {
	s.t.Helper()
	s.types("init: "+s.terraform.path+" -chdir="+filepath.Join(s.killed.dir, "infra")+" init -input=false", "init: ")
}

// tofuCreation returns the key of the lock with which OpenTofu makes a workspace in the schema of the tests.
func tofuCreation() int64 {
	sum := fnv.New32()
	_, _ = sum.Write([]byte("states\x00states"))
	return -int64(sum.Sum32())
}

// A workspace is made once no other process makes one. The server does not tell Terraform whose lock a workspace has: vmctl names nobody, and says how to see the holder. Nothing is
// broken, and once that session has ended, nothing is in the way.
func testPGLocked(t *testing.T, program terraformProgram) {
	s := newPGSite(t, program)
	one := strings.Replace(pgSpec, `["1", "2", "3", "4"]`, `[]`, 1)
	s.write("main.vmctl.hcl", one)

	// Another process makes a workspace.
	made := s.hold(fmt.Sprintf("SELECT pg_advisory_lock(-1), pg_advisory_lock(%d), 'locked';", tofuCreation()))
	cmd := s.command("apply", "--auto-approve")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.end(cmd)
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		s.mu.Lock()
		s.attempts += 100
		s.mu.Unlock()
		s.again.Broadcast()
		ended <- err
	}()
	s.mu.Lock()
	for s.attempts < 3 {
		s.again.Wait()
	}
	s.mu.Unlock()
	made()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}

	release := s.hold("SELECT pg_advisory_lock(id), 'locked' FROM states.states WHERE name LIKE '%--a--%';")
	s.write("main.vmctl.hcl", strings.Replace(one, `"one"`, `"two"`, 1))
	s.quiet(func() {
		s.run(0, "status")
		s.demands(s.run(2, "plan", "--detailed-exitcode"), "terraform: replace terraform_data.vm")
		out := s.run(1, "apply", "--auto-approve")
		s.demands(out, program.tool+"'s lock of its state is held by another session of its PostgreSQL server", "also when its process is killed")
		me, err := account.Current()
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []string{me.Username + "@", "force-unlock"} {
			if strings.Contains(out, wrong) {
				t.Errorf("it has %q:\n%s", wrong, out)
			}
		}
		here := strings.NewReplacer("PGHOST=HOST", "PGHOST="+s.dir, "DATABASE=DATABASE", "DATABASE=postgres", "USER=USER", "USER=vmctl")
		s.demands(s.types(here.Replace(out), "see whose it is: "), "somebody")
	})
	release()
	s.run(0, "apply", "--auto-approve")
	s.run(0, "destroy", "--auto-approve")
}

// Terraform that is killed while it makes, replaces and destroys leaves a row without a lock; vmctl that is killed leaves Terraform
// at work, and no second one starts. One further run does the rest, and nothing is left.
//
// row A56, of states on a server
func testPGKilled(t *testing.T, program terraformProgram) {
	s := newPGSite(t, program)
	one := strings.Replace(pgSpec, `["1", "2", "3", "4"]`, `[]`, 1)
	for _, act := range []struct {
		name, size string
		args       []string
	}{
		{"create", "one", []string{"apply", "--auto-approve"}},
		{"edit", "replace-two", []string{"apply", "--auto-approve"}},
		{"destroy", "replace-two", []string{"destroy", "--auto-approve"}},
	} {
		s.write("main.vmctl.hcl", strings.Replace(one, "one", act.size, 1))
		left := s.killAt("during", act.args...)
		if len(left) != 1 {
			t.Fatalf("%s: %d records of a Terraform that lives on, want 1", act.name, len(left))
		}
		s.quiet(func() {
			s.demands(s.run(6, "plan"), "the "+program.tool+" of a killed vmctl (apply, pid", "wait until pid")
			s.demands(s.run(6, act.args...), "still writes its state")
		})
		if act.name == "create" { // it ends well
			if _, err := s.goOn.WriteString("on\n"); err != nil {
				t.Fatal(err)
			}
		} else if err := syscall.Kill(left[0].PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := (process.Host{}).Wait(t.Context(), left...); err != nil {
			t.Fatal(err)
		}
		if act.name != "create" {
			if _, err := s.goOn.WriteString("on\n"); err != nil { // to the child of the killed one
				t.Fatal(err)
			}
		}
		s.run(0, act.args...)
		s.leavesNothing(act.name)
		if act.name != "destroy" {
			s.demands(s.run(0, "plan", "--detailed-exitcode"), "No changes")
		}
	}
	if names := s.names(); len(names) > 0 {
		t.Errorf("left on the server: %v", names)
	}
}

// The password of the connection reaches the server, and nobody else: no argument or environment of a process, no file that stays,
// no output, and no error, not even one in which Terraform repeats the connection.
func testPGSecret(t *testing.T, program terraformProgram) {
	s := newPGSite(t, program)
	if err := os.Remove(filepath.Join(s.killed.dir, "program")); err != nil {
		t.Fatal(err)
	}
	s.write("program", watchedProgram)
	if err := os.Chmod(filepath.Join(s.killed.dir, "program"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	s.environ = append(s.environ, "WATCHED="+s.killed.dir+"/seen")
	one := strings.Replace(pgSpec, `["1", "2", "3", "4"]`, `[]`, 1)
	s.write("main.vmctl.hcl", one)
	var out bytes.Buffer
	for _, args := range [][]string{{"apply", "--auto-approve"}, {"plan"}, {"plan", "--json"}, {"status"}, {"show", "vm.a"}} {
		out.WriteString(s.run(0, args...))
	}
	s.leaks("the output", out.String())
	s.leaksNowhere()
	right := s.environ[0]
	for _, wrong := range []struct{ connection, says string }{
		{s.connection(pgPassword), "invalid URL escape"},
		{s.connection(pgEscaped + "x"), "password authentication failed"},
		{strings.Replace(s.connection(pgEscaped), "@/", "@[/", 1), "missing ']' in host"},
		{"vmctl:" + pgPassword + "@host/x", "missing"},
		{"host=" + s.dir + " user=vmctl password=some CANARYACCESS", "missing"},
	} {
		s.environ[0] = "VMCTL_VAR_connection=" + wrong.connection
		for _, args := range [][]string{{"apply", "--auto-approve"}, {"plan", "--detailed-exitcode"}} {
			out := s.run(6, args...)
			s.demands(out, wrong.says)
			s.leaks("the failure", out)
		}
	}
	s.environ[0] = right
	s.leaksNowhere()

	// The environment is the user's own way to tell it.
	s.write("main.vmctl.hcl", strings.Replace(one, "conn_str = var.connection, ", "", 1))
	s.environ = append(s.environ, "PG_CONN_STR="+s.connection(pgEscaped))
	if err := os.Remove(filepath.Join(s.killed.dir, "seen")); err != nil {
		t.Fatal(err)
	}
	s.leaks("the output", s.run(0, "plan"))
	s.environ[len(s.environ)-1] = "PG_CONN_STR=" + s.connection(pgPassword)
	s.leaks("the failure", s.run(6, "plan", "--detailed-exitcode"))
	s.environ[len(s.environ)-1] = "PG_CONN_STR=" + s.connection(pgEscaped)
	s.run(0, "destroy", "--auto-approve")
	if err := os.Remove(filepath.Join(s.killed.dir, "seen")); err != nil { // it has the environment
		t.Fatal(err)
	}
	s.leaksNowhere()
}
