package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vmctl/internal/process"
)

// hostCommands returns script commands that do to a simulated host what happens to real
// hosts.
//
//	undefine VM          ends its process and removes its file and its disk, as somebody else would
//	bystander NAME       starts a process that is none of vmctl's; it ends with the script
//	lives NAME           demands that it runs
//	leaves NAME          ends it
//	rename-pid VM WHOM   lets the pid file of a VM name a bystander, or a number
//	lock-disk VM NAME    lets a bystander hold the disk of a VM
//	lock-file FILE NAME  lets a bystander hold a file of the disks' folder
//	locked VM            demands that its disk is locked
//	rm-run EXT           removes the only file of a run with that extension
//	tell VM WHAT         tells the VM something over its socket: boot
//	shut-down VM         lets the VM end by itself, as a guest that shuts down does, waits for that, and tidies up
//	disk-write DISK TEXT writes into a disk, as a guest does; where is the same each time
//	disk-holds DISK TEXT demands that the disk still has that
//	disk-locked DISK     demands that somebody holds it
//	one-image            demands that there is one image, and nothing beside it
//	make-disk DISK       makes a disk of 1 MiB, as somebody else would
//	disk-size DISK BYTES demands the size of a disk's file
//	in-box LABEL TEXT    demands that the box in a guest has the text; with !, that it has not
//	killed-at TEXT ARG…  runs vmctl and kills it once it says TEXT
//	journal OP           prints what the journals say of the steps of an operation
func hostCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"undefine": func(ts *testscript.TestScript, _ bool, args []string) {
			end(ts, processOf(ts, args[0]))
			ts.Check(os.Remove(hostFile(ts, "vms", args[0]+".json")))
			ts.Check(os.Remove(hostFile(ts, "disks", args[0]+".root")))
		},
		"bystander": func(ts *testscript.TestScript, _ bool, args []string) {
			child, err := process.Host{}.Start(process.Command{Path: "/bin/sleep", Args: []string{"1000000"}})
			ts.Check(err)
			id, err := child.Capture(context.Background())
			ts.Check(err)
			kept, err := json.Marshal(id)
			ts.Check(err)
			ts.Setenv("BYSTANDER_"+args[0], string(kept))
			ts.Defer(func() {
				_ = child.Force()                    //nolint:errcheck // it may have ended
				_ = child.Wait(context.Background()) //nolint:errcheck // it was forced
			})
		},
		"lives": func(ts *testscript.TestScript, _ bool, args []string) {
			if verdict, why := (process.Host{}).Verify(bystander(ts, args[0])); verdict != process.Match {
				ts.Fatalf("%s is %s: %s", args[0], verdict, why)
			}
		},
		"leaves":     func(ts *testscript.TestScript, _ bool, args []string) { end(ts, bystander(ts, args[0])) },
		"rename-pid": renamePid,
		"lock-disk": func(ts *testscript.TestScript, _ bool, args []string) {
			text, err := json.Marshal(map[string]any{"vm": "someone", "process": bystander(ts, args[1])})
			ts.Check(err)
			ts.Check(os.Symlink(string(text), filepath.Join(filepath.Dir(hostFile(ts, "disks", args[0]+".root")), args[0]+".root.lock")))
		},
		"lock-file": func(ts *testscript.TestScript, _ bool, args []string) {
			text, err := json.Marshal(map[string]any{"vm": "someone", "process": bystander(ts, args[1])})
			ts.Check(err)
			ts.Check(os.Symlink(string(text), hostFile(ts, "disks", args[0])+".lock"))
		},
		"rm-run": func(ts *testscript.TestScript, _ bool, args []string) {
			ts.Check(os.Remove(hostFile(ts, "run", "*."+args[0])))
		},
		"locked": func(ts *testscript.TestScript, _ bool, args []string) {
			_, err := os.Lstat(filepath.Join(ts.Getenv("DATA"), "sim-here", "disks", args[0]+".root.lock"))
			ts.Check(err)
		},
		"disk-write": func(ts *testscript.TestScript, _ bool, args []string) {
			f, err := os.OpenFile(hostFile(ts, "disks", args[0]), os.O_WRONLY, 0)
			ts.Check(err)
			_, err = f.WriteAt([]byte(args[1]), diskOffset)
			ts.Check(errors.Join(err, f.Close()))
		},
		"disk-holds": func(ts *testscript.TestScript, neg bool, args []string) {
			f, err := os.Open(hostFile(ts, "disks", args[0]))
			ts.Check(err)
			got := make([]byte, len(args[1]))
			_, err = f.ReadAt(got, diskOffset)
			ts.Check(errors.Join(err, f.Close()))
			if (string(got) == args[1]) == neg {
				ts.Fatalf("%s holds %q, and had %q", args[0], got, args[1])
			}
		},
		"disk-locked": func(ts *testscript.TestScript, neg bool, args []string) {
			_, err := os.Lstat(filepath.Join(ts.Getenv("DATA"), "sim-here", "disks", args[0]+".disk.lock"))
			if (err == nil) == neg {
				ts.Fatalf("the lock of %s: %v", args[0], err)
			}
		},
		"one-image": func(ts *testscript.TestScript, _ bool, _ []string) {
			hostFile(ts, "images", "*")
		},
		"make-disk": func(ts *testscript.TestScript, _ bool, args []string) {
			path := filepath.Join(ts.Getenv("DATA"), "sim-here", "disks", args[0]+".disk")
			ts.Check(os.WriteFile(path, nil, 0o600))
			ts.Check(os.Truncate(path, 1<<20))
		},
		"disk-size": func(ts *testscript.TestScript, _ bool, args []string) {
			info, err := os.Lstat(hostFile(ts, "disks", args[0]))
			ts.Check(err)
			if got := strconv.FormatInt(info.Size(), 10); got != args[1] {
				ts.Fatalf("%s has %s bytes, and was to have %s", args[0], got, args[1])
			}
		},
		"in-box": func(ts *testscript.TestScript, neg bool, args []string) {
			files, err := filepath.Glob(filepath.Join(ts.Getenv("DATA"), "sim-*", "homes", "*", "boxes", args[0], "box"))
			ts.Check(err)
			kept := ""
			for _, file := range files {
				content, err := os.ReadFile(file)
				ts.Check(err)
				kept += string(content)
			}
			if strings.Contains(kept, args[1]) == neg {
				ts.Fatalf("box %s has %s", args[0], kept)
			}
		},
		"tell":      tell,
		"shut-down": shutDown,
		"killed-at": killedAt,
		"journal":   func(ts *testscript.TestScript, _ bool, args []string) { fmt.Fprint(ts.Stdout(), journals(ts, args[0])) },
	}
}

// diskOffset is the offset at which tests write into a disk.
const diskOffset = 64 << 10

func bystander(ts *testscript.TestScript, name string) process.Identity {
	var id process.Identity
	ts.Check(json.Unmarshal([]byte(ts.Getenv("BYSTANDER_"+name)), &id))
	return id
}

func processOf(ts *testscript.TestScript, name string) process.Identity {
	for _, vm := range running(ts) {
		if vm.name == name {
			return vm.id
		}
	}
	ts.Fatalf("no process runs %s", name)
	return process.Identity{}
}

// hostFile finds a file of the only host that has it.
func hostFile(ts *testscript.TestScript, dir, name string) string {
	files, err := filepath.Glob(filepath.Join(ts.Getenv("DATA"), "sim-*", dir, name))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("%s/%s: there are %d", dir, name, len(files))
	}
	return files[0]
}

// renamePid changes the pid file of the script's only VM.
func renamePid(ts *testscript.TestScript, _ bool, args []string) {
	path := hostFile(ts, "run", "*.pid")
	content, err := os.ReadFile(path)
	ts.Check(err)
	var file map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(content)))
	decoder.UseNumber()
	ts.Check(decoder.Decode(&file))
	pid, err := strconv.Atoi(args[1])
	if err != nil {
		pid = bystander(ts, args[1]).PID
	}
	file["process"].(map[string]any)["pid"] = pid
	content, err = json.Marshal(file)
	ts.Check(err)
	ts.Check(os.WriteFile(path, content, 0o600))
}

func shutDown(ts *testscript.TestScript, neg bool, args []string) {
	id, file := processOf(ts, args[0]), pidFile(ts, args[0])
	tell(ts, neg, []string{args[0], "end"})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ts.Check(process.Host{}.Wait(ctx, id))
	ts.Check(os.Remove(file))
}

func tell(ts *testscript.TestScript, _ bool, args []string) {
	c, err := net.Dial("unix", strings.TrimSuffix(pidFile(ts, args[0]), ".pid")+".sock")
	ts.Check(err)
	defer c.Close() //nolint:errcheck // it was read
	ts.Check(json.NewEncoder(c).Encode(map[string]string{"ask": args[1]}))
	var a struct{ OK bool }
	ts.Check(json.NewDecoder(c).Decode(&a))
	if !a.OK {
		ts.Fatalf("%s does not know %q", args[0], args[1])
	}
}

// killedAt kills vmctl as soon as it prints a text.
func killedAt(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command("vmctl", args[1:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var errors strings.Builder
	cmd.Stderr = &errors
	ts.Check(cmd.Start())
	said := ""
	for lines := bufio.NewScanner(out); !strings.Contains(said, args[0]); {
		if !lines.Scan() {
			_ = cmd.Wait() //nolint:errcheck // it was to be killed
			ts.Fatalf("vmctl did not say %q, but\n%s%s", args[0], said, errors.String())
		}
		said += lines.Text() + "\n"
	}
	ts.Check(cmd.Process.Kill())
	_, err = io.Copy(io.Discard, out)
	ts.Check(err)
	if err := cmd.Wait(); err == nil {
		ts.Fatalf("vmctl had ended before it was killed:\n%s", said)
	}
	fmt.Fprint(ts.Stdout(), said)
}

func environment(ts *testscript.TestScript) []string {
	var all []string
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "VMCTL_DATA_DIR", "PATH"} {
		all = append(all, name+"="+ts.Getenv(name))
	}
	return all
}

// journals lists the journal entries of the steps of an operation, a line each, with their
// evidence.
func journals(ts *testscript.TestScript, op string) string {
	files, err := filepath.Glob(filepath.Join(ts.Getenv("DATA"), "journal-*"))
	ts.Check(err)
	slices.Sort(files)
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		ts.Check(err)
		for line := range strings.Lines(string(content)) {
			var l struct {
				E struct {
					Kind, Op, Address, How, Error string
					Evidence                      []string
				}
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				ts.Check(err)
			}
			if l.E.Op != op {
				continue
			}
			fmt.Fprintln(&all, strings.TrimSpace(strings.Join([]string{l.E.Kind, l.E.Op, l.E.Address, l.E.How, l.E.Error}, " ")))
			for _, line := range l.E.Evidence {
				fmt.Fprintln(&all, "  "+line)
			}
		}
	}
	return untimed(all.String(), ts.Getenv("HOME"))
}
