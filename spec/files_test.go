//go:build !windows

package spec_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// TestUnusualText loads files that no editor writes.
func TestUnusualText(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"byte order mark", "\ufeffvm \"a\" {}\n", ""},
		{"carriage returns", "vm \"a\" {\r\n  cpus = 1\r\n}\r\n", ""},
		{"old carriage returns", "vm \"a\" {\r  cpus = 1\r}\r", "Invalid character"},
		{"no last line end", "vm \"a\" {}", ""},
		{"spaces only", " \t\n", ""},
		{"null bytes", "vm \"a\" {\x00}", "Invalid character"},
		{"bad UTF-8", "vm \"\xff\" {}", "Invalid character encoding"},
		{"UTF-16", "\xff\xfev\x00m\x00", "Invalid character encoding"},
		{"binary", strings.Repeat("\x7fELF\x00\x01\xfe", 100), "Invalid"},
		{"garbage", strings.Repeat("}{][)($%\"", 10<<17), "it is larger than 2MiB"},
		{"garbage of just that size", strings.Repeat("}{][)($%", 1<<16), "Too deeply nested"},
		{"long line", "locals {\n  x = \"" + strings.Repeat("x", 1<<20) + "\"\n}\n", ""},
		{"many locals", "locals {\n" + manyLocals(20000) + "}\n", ""},
		{"many bad characters", "A A={" + strings.Repeat("@", 1<<16), "and 65536 other diagnostic"},
		{"many mistakes", "locals {\n" + strings.ReplaceAll(manyLocals(2000), "-1", "nothing") + "}\n", "and 1999 other diagnostic"},
		{"open brackets", "locals {\n  x = " + strings.Repeat("[", 1<<16), "Too deeply nested"},
		{"open templates", "locals {\n  x = " + strings.Repeat("\"${", 1<<16), "Too deeply nested"},
		{"open blocks", strings.Repeat("vm {", 1<<16), "Too deeply nested"},
		{"open functions", "locals {\n  x = " + strings.Repeat("try(", 1<<16), "Too deeply nested"},
		{"many signs", "locals {\n  x = " + strings.Repeat("-", 1<<16) + "1\n}\n", "Too deeply nested"},
		{"many sums", "locals {\n  x = 1" + strings.Repeat("+1", 1<<16) + "\n}\n", "Too deeply nested"},
		{"many conditions", "locals {\n  x = " + strings.Repeat("true?1:", 1<<16) + "1\n}\n", "Too deeply nested"},
		{"many indices", "locals {\n  x = []" + strings.Repeat("[0]", 1<<16) + "\n}\n", "Too deeply nested"},
		{"many attributes", "locals {\n  x = var" + strings.Repeat(".a", 1<<16) + "\n}\n", "Too deeply nested"},
		{"nested tries", "locals {\n  x = " + strings.Repeat("try(", 300) + "1" + strings.Repeat(")", 300) + "\n}\n", ""},
		{"many parts", "locals {\n  x = \"" + strings.Repeat("${1}", 20000) + "\"\n}\n", ""},
		{"many elements", "locals {\n  x = [" + strings.Repeat("[1], ", 20000) + "]\n}\n", ""},
		{"many lines", "locals {\n  x = {\n" + strings.Repeat("  y = -1 + 2\n", 1) + manyLocals(5000) + "}\n}\n", ""},
		{"doubling tries", "locals {\n  x = " + strings.Repeat("try(nope, can(", 200) + "1" + strings.Repeat("))", 200) + "\n}\n", "Unknown name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, diags := load(t, c.src)
			got := diags.Error()
			if (c.want == "") != (len(diags) == 0) || !strings.Contains(got, c.want) {
				t.Errorf("got %.300s\nwant %q", got, c.want)
			}
			render(t, config, diags[:min(len(diags), 20)])
		})
	}
}

func manyLocals(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("  l" + strings.Repeat("a", i%7) + "_" + cty.NumberIntVal(int64(i)).AsBigFloat().Text('f', 0) + " = -1\n")
	}
	return b.String()
}

// TestUnusualFiles loads folders with links, pipes and folders in them.
//
// row L50: a kernel that cannot be read
func TestUnusualFiles(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(t *testing.T, dir string)
		want  []string
	}{
		{
			name: "spec file in a circle of links",
			build: func(t *testing.T, dir string) {
				link(t, "b.vmctl.hcl", filepath.Join(dir, "a.vmctl.hcl"))
				link(t, "a.vmctl.hcl", filepath.Join(dir, "b.vmctl.hcl"))
			},
			want: []string{
				"`a.vmctl.hcl` could not be read: too many levels of symbolic links.",
				"`b.vmctl.hcl` could not be read: too many levels of symbolic links.",
			},
		},
		{
			name:  "spec file that is a pipe",
			build: func(t *testing.T, dir string) { pipe(t, filepath.Join(dir, "a.vmctl.hcl")) },
			want:  []string{"`a.vmctl.hcl` could not be read: it is not a regular file."},
		},
		{
			name:  "link to nothing",
			build: func(t *testing.T, dir string) { link(t, "gone", filepath.Join(dir, "a.vmctl.hcl")) },
			want:  []string{"`a.vmctl.hcl` could not be read: no such file or directory."},
		},
		{
			name: "kernels",
			build: func(t *testing.T, dir string) {
				pipe(t, filepath.Join(dir, "pipe"))
				link(t, "circle", filepath.Join(dir, "circle"))
				link(t, "gone", filepath.Join(dir, "dangling"))
				spec := ""
				for _, path := range []string{"pipe", "circle", "dangling", "/dev/zero", "/no/such/kernel", "main.vmctl.hcl/x", "a\\u0000b"} {
					name := strings.Trim(strings.Map(func(r rune) rune {
						if r >= 'a' && r <= 'z' {
							return r
						}
						return '_'
					}, path), "_")
					spec += "vm \"" + name + "\" {\n  boot {\n    kernel = \"" + path + "\"\n  }\n}\n"
				}
				write(t, filepath.Join(dir, "main.vmctl.hcl"), []byte(spec))
			},
			want: []string{
				"`boot.kernel` of `vm.pipe` is \"pipe\", which cannot be used: it is not a regular file. Name a regular file that is not empty.",
				"`boot.kernel` of `vm.circle` is \"circle\", which cannot be used: too many levels of symbolic links. Name a regular file that is not empty.",
				"`boot.kernel` of `vm.dangling` is \"dangling\", which cannot be used: no such file or directory. Relative paths are read from the folder of the spec.",
				"`boot.kernel` of `vm.dev_zero` is \"/dev/zero\", which cannot be used: it is not a regular file. Name a regular file that is not empty.",
				"`boot.kernel` of `vm.no_such_kernel` is \"/no/such/kernel\", which cannot be used: no such file or directory. Correct the path, or put the file there.",
				"`boot.kernel` of `vm.main_vmctl_hcl_x` is \"main.vmctl.hcl/x\", which cannot be used: not a directory. Name a regular file that is not empty.",
				"`boot.kernel` of `vm.a_u____b` is \"a\\x00b\", which is not a file path.",
			},
		},
		{
			name: "functions stay inside",
			build: func(t *testing.T, dir string) {
				outside := t.TempDir()
				write(t, filepath.Join(outside, "secret"), []byte("outside"))
				link(t, outside, filepath.Join(dir, "out"))
				link(t, filepath.Join(outside, "secret"), filepath.Join(dir, "link"))
				link(t, "circle", filepath.Join(dir, "circle"))
				pipe(t, filepath.Join(dir, "pipe"))
				write(t, filepath.Join(dir, "latin1"), []byte("\xe9"))
				write(t, filepath.Join(dir, "huge"), bytes.Repeat([]byte("x"), 8<<20+1))
				write(t, filepath.Join(dir, "main.vmctl.hcl"), []byte(`locals {
  a = file("out/secret")
  b = filesha256("link")
  c = templatefile("sub/../../x", {})
  d = file("circle")
  e = file("pipe")
  f = file("latin1")
  g = file("huge")
  h = fileexists("link")
  i = file("")
  j = fileexists("/etc/passwd")
  fine = [fileexists("nothing"), fileexists("latin1"), filesha256("latin1")]
}
`))
			},
			want: []string{
				`"out/secret" leads out of the folder of the spec by a symbolic link`,
				`"link" leads out of the folder of the spec by a symbolic link`,
				`"sub/../../x" is outside of the folder of the spec`,
				`"circle" cannot be read: too many levels of symbolic links`,
				`"pipe" cannot be read: it is not a regular file`,
				`"latin1" is not UTF-8 text`,
				`"huge" is larger than 8MiB`,
				`"link" leads out of the folder of the spec by a symbolic link`,
				`"" is outside of the folder of the spec`,
				`"/etc/passwd" is outside of the folder of the spec`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.build(t, dir)
			t.Chdir(dir)
			_, diags := spec.Load(".", spec.Inputs{})
			if len(diags) != len(c.want) {
				t.Fatalf("got %d diagnostics: %v", len(diags), diags)
			}
			for i, d := range diags {
				if !strings.Contains(d.Detail, c.want[i]) {
					t.Errorf("got  %s\nwant %s", d.Detail, c.want[i])
				}
			}
		})
	}
}

func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func pipe(t testing.TB, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestMissingFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	c, diags := spec.Load("nowhere", spec.Inputs{})
	const want = "Error: Unreadable folder\n\nRead the folder of the spec: open nowhere: no such file or directory. Name the\nfolder of the spec with `-C DIR`.\n\n"
	if got := render(t, c, diags); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestSpecFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.vmctl.hcl", "a.vmctl.hcl", ".hidden.vmctl.hcl", "c.hcl", "d.vmctl.hcl~", "sub/e.vmctl.hcl", "vmctl.hcl"} {
		write(t, filepath.Join(dir, name), nil)
	}
	got, err := spec.SpecFiles(dir)
	want := filepath.Join(dir, "a.vmctl.hcl") + " " + filepath.Join(dir, "b.vmctl.hcl")
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %v, %v\nwant %s", got, err, want)
	}
}

// An apply uses the file that its plan was made with: a file is read once.
func TestDigestsStay(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kernel"), []byte("one"))
	write(t, filepath.Join(dir, "main.vmctl.hcl"), []byte("vm \"a\" {\n  boot {\n    kernel = \"kernel\"\n  }\n}\n"))
	c, diags := spec.Load(dir, spec.Inputs{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	write(t, filepath.Join(dir, "kernel"), []byte("two"))
	r, diags := c.Resolve(vm("a"), nil)
	if diags.HasErrors() || !r.Want.RawEquals(c.Resources[0].Want) {
		t.Errorf("the digest changed after Load: %v %#v", diags, r.Want)
	}
	c, diags = spec.Load(dir, spec.Inputs{})
	if diags.HasErrors() || r.Want.RawEquals(c.Resources[0].Want) {
		t.Error("another Load has the old digest")
	}
}
