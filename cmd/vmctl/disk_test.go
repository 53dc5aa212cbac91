package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// holdDisk lets a bystander hold a disk that is no root disk: hold-disk DISK NAME.
func holdDisk(ts *testscript.TestScript, _ bool, args []string) {
	text, err := json.Marshal(map[string]any{"vm": "someone", "process": bystander(ts, args[1])})
	ts.Check(err)
	ts.Check(os.Symlink(string(text), filepath.Join(filepath.Dir(hostFile(ts, "disks", args[0]+".disk")), args[0]+".disk.lock")))
}
