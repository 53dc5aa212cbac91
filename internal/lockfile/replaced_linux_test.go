package lockfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"vmctl/internal/faultinject"
	"vmctl/internal/lockfile"
)

// Whoever holds a lock holds it, whatever is done to its file.
//
// row X04, of the lock itself: each kind is one at another path
func TestReplacedFileHasItsHolder(t *testing.T) {
	for name, tamper := range map[string]func(path string) error{
		"removed":  os.Remove,
		"moved":    func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := lockPath(t)
			cmd := child(t, "hold", path)
			cmd.Env = append(cmd.Env, "LOCKFILE_TEST_HERE=1")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			if err := tamper(path); err != nil {
				t.Fatal(err)
			}
			if got, want := holder(t, path), fmt.Sprintf("held true by %d child", cmd.Process.Pid); got != want {
				t.Errorf("holder: %s, want %s", got, want)
			}
			_, err = lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: here()})
			host, hostErr := os.Hostname()
			want := fmt.Sprintf("lock %s: held by child (pid %d on %s) since 2026-03-04T05:06:07Z, though its file was replaced", path, cmd.Process.Pid, host)
			if err == nil || err.Error() != want || hostErr != nil {
				t.Errorf("error %v, want %s", err, want)
			}
			var held *lockfile.HeldError
			if _, err := lockfile.Clear(t.Context(), path); !errors.As(err, &held) {
				t.Errorf("clearing it: %v, want a *HeldError", err)
			}
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			release(t, acquire(t, lockfile.Request{Path: path, Owner: here()}))
		})
	}
}

func TestFileSystemWithoutLocks(t *testing.T) {
	for errno, why := range map[syscall.Errno]string{
		syscall.EOPNOTSUPP: "operation not supported", syscall.ENOSYS: "function not implemented",
		syscall.ENOLCK: "no locks available", syscall.EINVAL: "invalid argument",
	} {
		path := lockPath(t)
		want := map[string]string{
			"acquire": "lock " + path + ": the file system has no file locks (" + why + "): put it on a local disk",
			"holder":  "look at lock " + path + ": the file system has no file locks (" + why + "): put it on a local disk",
			"clear":   "clear lock " + path + ": the file system has no file locks (" + why + "): put it on a local disk",
		}
		got := map[string]string{}
		err := faultinject.Run(filepath.Dir(path), func(c faultinject.Call) syscall.Errno {
			if c.Name == "flock" {
				return errno
			}
			return 0
		}, func() {
			_, err := lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: owner(1)})
			got["acquire"] = fmt.Sprint(err)
			_, _, err = lockfile.Holder(t.Context(), path)
			got["holder"] = fmt.Sprint(err)
			_, err = lockfile.Clear(t.Context(), path)
			got["clear"] = fmt.Sprint(err)
		})
		if err != nil {
			t.Fatal(err)
		}
		for what, said := range want {
			if got[what] != said {
				t.Errorf("%s without flock: %s, want %s", what, got[what], said)
			}
		}
		if _, err := os.Lstat(path + ".owner"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a record of nobody: %v", err)
		}
	}
}

// A lock that cannot be opened is held by nobody and had by nobody.
//
// row J33
func TestUnreadableLockIsRefused(t *testing.T) {
	path := lockPath(t)
	release(t, acquire(t, lockfile.Request{Path: path, Owner: owner(1)}))
	var acquired error
	err := faultinject.Run(filepath.Dir(path), func(c faultinject.Call) syscall.Errno { return syscall.EACCES }, func() {
		_, acquired = lockfile.Acquire(t.Context(), lockfile.Request{Path: path, Owner: owner(1)})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "lock " + path + ": open " + path + ": permission denied"
	if acquired == nil || acquired.Error() != want {
		t.Errorf("error %v, want %s", acquired, want)
	}
}

// Two containers can share a folder, a host name and the numbers of processes: who
// has this one's name and number is waited for all the same.
func TestNamesakeIsNotSelf(t *testing.T) {
	for _, task := range []string{"hold", "share"} {
		t.Run(task, func(t *testing.T) {
			path := lockPath(t)
			cmd := holding(t, task, path)
			record := map[string]string{"hold": path, "share": path + ".seat-0"}[task] + ".owner"
			data, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			var said map[string]any
			if err := json.Unmarshal(data, &said); err != nil {
				t.Fatal(err)
			}
			me := here()
			said["pid"], said["host"] = me.PID, me.Host
			if data, err = json.Marshal(said); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(record, data, 0o600); err != nil {
				t.Fatal(err)
			}
			var told []lockfile.Owner
			l := acquire(t, lockfile.Request{Path: path, Owner: me, Wait: time.Hour, Waiting: func(o lockfile.Owner) {
				told = append(told, o)
				kill(t, cmd)
			}})
			if len(told) != 1 || told[0].PID != me.PID || told[0].Host != me.Host {
				t.Errorf("waited for %+v, want who has this process's name and number", told)
			}
			release(t, l)
		})
	}
}
