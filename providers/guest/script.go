package guest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"vmctl/internal/shellword"
	"vmctl/providers"
)

// An SSH server hands a line to the login shell of the user, whatever shell that is. The line is
// always loader: it runs sh, which reads the script of the command from its input, one line. So
// nothing of a command is in an argument of a process before the program itself runs, and its
// variables never are. The read command of a shell takes no byte of the input behind the line:
// that is the command's.
const loader = `exec /bin/sh -c 'IFS= read -r _vmctl_line && eval "$_vmctl_line"'`

// script returns the line that makes sh run a command. It writes mark before it runs the program:
// without the mark, the program did not begin.
func script(c providers.Command, mark string) string {
	var b strings.Builder
	if c.Dir != "" {
		// Beginning with a dot, no directory is an option, or is looked for elsewhere (CDPATH).
		dir := c.Dir
		if !strings.HasPrefix(dir, "/") {
			dir = "./" + dir
		}
		fmt.Fprintf(&b, "cd %s || exit; ", shellword.Quote(dir))
	}
	for _, v := range c.Env {
		name, value, _ := strings.Cut(v, "=")
		fmt.Fprintf(&b, "export %s=%s; ", name, shellword.Quote(value))
	}
	fmt.Fprintf(&b, "echo %s; ", mark)
	if !strings.HasPrefix(c.Args[0], "-") { // else it would be an option of exec
		b.WriteString("exec ")
	}
	b.WriteString(shellword.Join(c.Args))
	// The guest may export variables of these names: the program must not get the script with them.
	line := "unset _vmctl_line _vmctl_lf; "
	body := b.String()
	if strings.Contains(body, "\n") { // all of them in single quotes, as Quote writes them
		line += `_vmctl_lf=$(printf "\nx"); _vmctl_lf=${_vmctl_lf%x}; `
		body = strings.ReplaceAll(body, "\n", `'"$_vmctl_lf"'`)
	}
	return line + body + "\n"
}

// newMark returns a word that no shell writes by accident.
func newMark() string { return "vmctl-" + rand.Text() }

// noiseLimit is the size of the longest output of a login shell before the mark.
const noiseLimit = 64 << 10

// errNoise reports that a login shell wrote too much.
var errNoise = errors.New("the login shell writes without end before the command begins")

// unmarked is a writer that passes on all that comes after a mark and its line break. The startup
// files of a login shell may write before it.
type unmarked struct {
	mark  string
	next  io.Writer
	noise []byte // before the mark
	seen  bool
}

// Write fails if no mark comes.
func (u *unmarked) Write(b []byte) (int, error) {
	if u.seen {
		return u.next.Write(b)
	}
	u.noise = append(u.noise, b...)
	noise, rest, found := bytes.Cut(u.noise, []byte(u.mark+"\n"))
	switch {
	case !found && len(u.noise) > noiseLimit:
		return 0, errNoise
	case !found:
		return len(b), nil
	}
	u.noise, u.seen = noise, true
	if len(rest) == 0 {
		return len(b), nil
	}
	_, err := u.next.Write(rest)
	return len(b), err
}
