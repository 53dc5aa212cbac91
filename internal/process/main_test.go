package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"vmctl/internal/process"
)

// role says what a process of this test binary does instead of testing. All of
// them end when their input does, which comes from the test.
const role = "PROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	as := os.Getenv(role)
	if as == "" {
		os.Exit(m.Run())
	}
	if err := play(as); err != nil {
		fmt.Fprintln(os.Stderr, as+":", err)
		os.Exit(1)
	}
}

func play(as string) error {
	switch as {
	case "polite":
		return playPolite()
	case "late":
		return playLate()
	case "deaf":
		return playDeaf()
	case "tree": // a child, and a child of that
		return playParent("branch")
	case "branch":
		return playParent("deaf")
	case "family": // two children, in one group
		return playParent("deaf", "deaf")
	case "keeper": // a child that lives by itself
		return playKeeper()
	case "report":
		return playReport()
	case "see":
		return playSee()
	case "starter":
		return playStarter()
	}
	return fmt.Errorf("no such role")
}

// mark is an argument of every process that plays a role for this one.
var mark = fmt.Sprintf("/data of test %d", os.Getpid())

// say tells the test about this process, in one write.
func say(as string) { fmt.Fprintf(os.Stdout, "%s %d\n", as, os.Getpid()) }

func inputEnds() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func playPolite() error {
	requested, cancel, err := process.Requested(context.Background())
	if err != nil {
		return err
	}
	defer cancel()
	go func() {
		defer cancel()
		if err := inputEnds(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	say("polite")
	<-requested.Done()
	return nil
}

func playLate() error {
	requested, cancel, err := process.Requested(context.Background())
	if err != nil {
		return err
	}
	defer cancel()
	say("late")
	<-requested.Done()
	say("heard")
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func playDeaf() error {
	signal.Ignore(syscall.SIGTERM)
	say("deaf")
	return inputEnds()
}

func playParent(children ...string) error {
	signal.Ignore(syscall.SIGTERM)
	for _, child := range children {
		cmd := exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Env = append(os.Environ(), role+"="+child)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
	}
	say("parent")
	return inputEnds()
}

func playKeeper() error {
	child, err := process.Host{}.Start(process.Command{
		Path: os.Args[0], Args: os.Args[1:], Env: append(os.Environ(), role+"=deaf"),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	})
	if err != nil {
		return err
	}
	if _, err := child.Capture(context.Background()); err != nil {
		return err
	}
	say("parent")
	return inputEnds()
}

// playReport says what it was given.
func playReport() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	input, err := io.ReadAll(os.Stdin)
	fmt.Fprintf(os.Stdout, "args %q dir %s given %q not %q input %d bytes\n",
		os.Args[1:], dir, os.Getenv("GIVEN"), os.Getenv("NOT_FOR_CHILDREN"), len(input))
	return err
}

// playSee says what it thinks of the process that its input describes.
func playSee() error {
	var id process.Identity
	if err := json.NewDecoder(os.Stdin).Decode(&id); err != nil {
		return err
	}
	host := otherHost(os.Args[1:])
	verdict, reason := host.Verify(id)
	fmt.Fprintf(os.Stdout, "verify: %s: %s\n", verdict, reason)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := host.Capture(ctx, id.PID)
	fmt.Fprintln(os.Stdout, "capture:", err)
	fmt.Fprintln(os.Stdout, "request:", host.Request(id))
	_, err = host.Force(id)
	fmt.Fprintln(os.Stdout, "force:", err)
	fmt.Fprintln(os.Stdout, "wait:", host.Wait(ctx, id))
	found, err := host.Find(context.Background(), process.HasArgument(os.Args[2]))
	fmt.Fprintln(os.Stdout, "find:", len(found), err)
	return nil
}
