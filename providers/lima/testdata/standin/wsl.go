//go:build unix

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"vmctl/internal/wsl/wsltest"
)

// worldKey names the variable with the folder of the wsltest.World whose wsl.exe this binary plays.
const worldKey = "LIMATEST_WORLD"

// worldOf returns the stand-in for WSL of the home of a stand-in.
func worldOf(home string) wsltest.World {
	return wsltest.World{Dir: filepath.Join(filepath.Dir(home), "wsl")}
}

func isInWSL(doc map[string]any) bool { return doc["vmType"] == "wsl2" }

// runInWSL plays the host agent of an instance of WSL: it registers the distribution the first time, starts
// it, serves its SSH, and ends with it.
func runInWSL(name, pidFile string, doc map[string]any, requested <-chan os.Signal) error {
	defer drop(pidFile)
	dir, w, distribution := inHome(name), worldOf(inHome()), "lima-"+name
	params, _ := doc["param"].(map[string]any)
	there := func(d wsltest.Distribution) bool { return d.Name == distribution }
	if !slices.ContainsFunc(w.Read(), there) {
		if err := w.Import(wsltest.Distribution{Name: distribution, Folder: dir, Deaf: params["deaf"] != nil}); err != nil {
			return err
		}
	}
	if !w.Start(distribution) {
		return errors.New("ERROR_FILE_NOT_FOUND")
	}
	guest, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	config, err := serverConfig(dir)
	if err != nil {
		return err
	}
	go serveSSH(guest, config, guestEnv(doc))
	for _, running := range []bool{false, true} {
		fmt.Println(encoded(map[string]any{"status": map[string]any{"sshLocalPort": guest.Addr().(*net.TCPAddr).Port, "running": running}}))
	}
	for {
		select {
		case <-requested:
			w.Terminate(distribution)
		case <-time.After(5 * time.Millisecond):
		}
		if !slices.ContainsFunc(w.Read(), func(d wsltest.Distribution) bool { return there(d) && d.State == wsltest.Running }) {
			return nil
		}
	}
}
