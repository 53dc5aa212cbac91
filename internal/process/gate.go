package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// gateFile is the file descriptor of the gate of a process, from which it reads a line before it becomes its program.
const gateFile = 3

// shell is the shell of every Unix system.
const shell = "/bin/sh"

// throughGate lets a shell wait at its gate, and become a program with its arguments in the same process. The program outlives
// the terminal, and creates files that only the user may read. Without a line, as after the end of the starter, it is not begun.
const throughGate = `trap '' HUP; umask 077; read -r line <&3 || exit 1; exec 3<&- "$0" "$@"`

// ShellGate returns a command that waits at its gate, and becomes a program with the arguments in the same process. It starts in a
// tenth of the time of a program of Go. false: there is no shell, or it might not hand on a variable as it is: some shells lose those
// whose names are no names of theirs, and obey a few others.
func ShellGate(path string, args, env []string) (command []string, ok bool) {
	if _, err := os.Stat(shell); err != nil || slices.ContainsFunc(env, isOfShell) {
		return nil, false
	}
	return append([]string{shell, "-c", throughGate, path}, args...), true
}

// isOfShell reports whether a shell may change a variable (NAME=value), or be changed by it.
func isOfShell(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	isPlain := name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == "" && (name[0] < '0' || name[0] > '9')
	return !isPlain || slices.Contains([]string{"BASHOPTS", "ENV", "IFS", "SHELLOPTS"}, name)
}

// AwaitGate waits at the gate of this process until its starter lets it begin. It fails if the starter ended, or gave it up.
func AwaitGate() error {
	gate := os.NewFile(gateFile, "gate")
	_, err := bufio.NewReader(gate).ReadString('\n')
	if err = errors.Join(err, gate.Close()); err != nil {
		return fmt.Errorf("wait for the process that starts it: %w", err)
	}
	return nil
}

// Held is a process that waits at its gate. It becomes its program after Begin, and ends if this process ends before, or calls Drop.
type Held struct {
	// Identity tells the process from every other, once it is the program. It can be recorded before Begin.
	Identity Identity

	gate *os.File
}

// Hold starts a command that waits at its gate, as of ShellGate, and becomes the program at an absolute path in the same process. The
// caller calls Begin or Drop, and then waits for cmd.
func (h Host) Hold(cmd *exec.Cmd, path string) (*Held, error) {
	here, err := h.sys().HostIdentity()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	exe, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	cmd.ExtraFiles = []*os.File{theirs} // the first of them is file descriptor 3
	err = cmd.Start()
	if err = errors.Join(err, theirs.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", path, err), ours.Close())
	}
	s, err := h.sys().Look(cmd.Process.Pid) // until it is collected it keeps its pid
	if err != nil {
		err = errors.Join(fmt.Errorf("start %s: pid %d cannot be read: %w", path, cmd.Process.Pid, err), ours.Close())
		_ = cmd.Wait() //nolint:errcheck // it was given up, and tells that
		return nil, err
	}
	id := here.identity(cmd.Process.Pid, s)
	id.Exe, id.Argv0 = program(exe), valid(path)
	return &Held{Identity: id, gate: ours}, nil
}

// Begin lets the process become its program.
func (h *Held) Begin() error {
	_, err := h.gate.WriteString("\n")
	return errors.Join(err, h.gate.Close())
}

// Drop gives the process up: it ends, and its program never begins.
func (h *Held) Drop() error { return h.gate.Close() }
