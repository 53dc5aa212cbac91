package guest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"vmctl/internal/shellword"
	"vmctl/internal/sshx"
	"vmctl/providers"
)

// Shell runs a command over SSH in front of the terminal, or the login shell of the user if the command has no Args, and
// returns its status as sshx.Shell does. Dir and Env count as in Guest.Run: no argument of a process shows the variables.
// Its streams are those of the terminal.
func Shell(ctx context.Context, t sshx.Target, c providers.Command, terminal sshx.Terminal) (status int, err error) {
	if len(c.Args) == 0 {
		c.Args = []string{"/bin/sh", "-c", `exec "${SHELL:-/bin/sh}" -l`}
	}
	if err := c.Valid(); err != nil {
		return 0, err
	}
	g := OverSSH(t, Keepalive{})
	defer func() { err = errors.Join(err, g.Close()) }()
	file, err := keep(ctx, g, attended(c))
	if err != nil {
		return 0, err
	}
	terminal.Line = "exec /bin/sh " + shellword.Quote(file)
	status, err = sshx.Shell(ctx, t, terminal)
	if err != nil { // the script may not have removed itself
		_, _ = g.Run(ctx, providers.Command{Args: []string{"rm", "-f", "--", file}}) //nolint:errcheck // err counts
	}
	return status, err
}

// attended returns a script that removes its own file, and becomes the command. The terminal is its input, so that it
// cannot come that way.
func attended(c providers.Command) string {
	var b strings.Builder
	b.WriteString(`rm -f -- "$0"` + "\n")
	if c.Dir != "" {
		dir := c.Dir
		if !strings.HasPrefix(dir, "/") { // else it may be an option
			dir = "./" + dir
		}
		fmt.Fprintf(&b, "cd %s || exit\n", shellword.Quote(dir))
	}
	for _, v := range c.Env {
		name, value, _ := strings.Cut(v, "=")
		fmt.Fprintf(&b, "export %s=%s\n", name, shellword.Quote(value))
	}
	if !strings.HasPrefix(c.Args[0], "-") { // else it would be an option of exec
		b.WriteString("exec ")
	}
	b.WriteString(shellword.Join(c.Args) + "\n")
	return b.String()
}

// keep writes a script into a new file of a guest, for its user alone, and returns the path.
func keep(ctx context.Context, g providers.Guest, script string) (string, error) {
	var file strings.Builder
	o, err := g.Run(ctx, providers.Command{
		Args:  []string{"sh", "-c", `umask 077; f=$(mktemp) && cat >"$f" && printf %s "$f"`},
		Stdin: strings.NewReader(script), Stdout: &file,
	})
	switch {
	case err != nil:
		return "", err
	case o.Status != 0 || file.Len() == 0:
		return "", fmt.Errorf("write a script into the guest: status %d: %s", o.Status, strings.TrimSpace(o.Stderr))
	}
	return file.String(), nil
}
