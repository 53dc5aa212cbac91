//go:build linux

package acceptance_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// Specs of workspaces of the repository beside a site's spec.
const (
	simDev = `vm "dev" {
  provider = provider.sim.here
}
`
	workIn = `workspace "auth" {
  vm            = vm.dev
  repo          = "repo"
  branch        = "auth"
  path          = "@HOME/w/auth"
  create_branch = true
}
`
)

var (
	workHere    = edited(workIn, "  vm            = vm.dev\n", "")
	replaceWork = []string{"apply", "--auto-approve", "--parallelism=1", "--allow-replace=workspace.auth"}
	fetchWork   = []string{"workspace", "fetch", "auth"}
	pushWork    = []string{"workspace", "push", "auth"}
	saveWork    = []string{"workspace", "save", "auth"}
	restoreWork = []string{"workspace", "restore", "auth"}
)

func saved(spec string) string {
	return edited(spec, "  create_branch = true\n", "  create_branch = true\n  sync {\n    on_destroy = \"save\"\n  }\n")
}

func fetched(spec string) string { return strings.Replace(saved(spec), `"save"`, `"fetch"`, 1) }

func elsewhere(spec string) string { return strings.Replace(spec, "w/auth", "w/other", 1) }

// repository makes the repository of a site.
func (s *crashSite) repository() {
	s.t.Helper()
	s.shell(s.dir, `git init -q -b main repo; cd repo; git config user.name Ann; git config user.email ann@example.org
echo one >file; echo '*.o' >.gitignore; git add .; git commit -q -m one; mkdir "$HOME/w"`)
}

// committed is a commit in a workspace.
func committed(s *crashSite) {
	s.shell(filepath.Join(s.home, "w", "auth"), `echo two >>file; git -c user.name=a -c user.email=a@b commit -q -a -m two`)
}

// worked is work of every sort in a workspace.
func worked(s *crashSite) {
	committed(s)
	s.shell(filepath.Join(s.home, "w", "auth"), `echo staged >s; git add s; echo more >>s; echo three >>file; echo new >"it's \$new"; rm .gitignore`)
}

// savedBefore is work that was saved before its workspace was destroyed, and made again.
func savedBefore(s *crashSite) {
	worked(s)
	s.must(saveWork...)
	s.must("destroy", "--auto-approve", "--target=workspace.auth", "--allow-dirty=workspace.auth")
	s.must("apply", "--auto-approve")
}

// advanced is a commit of this host on the branch of a workspace.
func advanced(s *crashSite) {
	s.shell(filepath.Join(s.dir, "repo"), `git checkout -q auth; echo host >>file; git commit -q -a -m host; git checkout -q main`)
}

// shell runs a script as the user of the site, at a fixed time: its commits are the same at each site.
func (s *crashSite) shell(dir, script string) {
	s.t.Helper()
	cmd := exec.Command("sh", "-e", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(s.environ(), "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential(tracee{uid: number(s.t, shared.user.Uid), gid: number(s.t, shared.user.Gid)})}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

var saveRef = regexp.MustCompile(`^refs/vmctl/auth/[^ ]+`)

// work counts the references of the repository, the worktrees and the locks of it, and the files of workspaces. A save counts by
// what is in it: one more of what was there in between is no loss.
func (s *crashSite) work(all map[string]int) {
	s.t.Helper()
	git := func(args ...string) string {
		out, code := s.program("/usr/bin/git", append([]string{"-C", "repo"}, args...)...)
		if code != 0 {
			s.errorf("git %s: exit code %d", strings.Join(args, " "), code)
		}
		return out
	}
	git("fsck", "--strict")
	for line := range strings.Lines(git("for-each-ref", "--format=%(refname) %(objectname) %(tree)")) {
		f := strings.Fields(line)
		if saveRef.MatchString(f[0]) {
			all["save "+f[2]] = 1
			continue
		}
		all["reference "+f[0]+" "+f[1]]++
	}
	for line := range strings.Lines(git("worktree", "list", "--porcelain")) {
		if path, is := strings.CutPrefix(strings.TrimSpace(line), "worktree "); is {
			all["worktree "+strings.ReplaceAll(path, s.home, "HOME")]++
		}
	}
	err := filepath.WalkDir(filepath.Join(s.dir, "repo", ".git"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".lock") {
			all["lock "+strings.TrimPrefix(path, s.home)]++
		}
		return err
	})
	err = errors.Join(err, filepath.WalkDir(filepath.Join(s.home, "w"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git" && d.IsDir():
			return fs.SkipDir
		case d.Name() == ".git", d.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		all[fmt.Sprintf("work %s %x", strings.TrimPrefix(path, s.home), sha256.Sum256(text))]++
		return err
	}))
	if err != nil {
		s.errorf("see what is there: %v", err)
	}
}
