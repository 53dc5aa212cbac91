//go:build unix

package lima_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/yamltext"
	"vmctl/providers"
	"vmctl/providers/lima"
)

// guestPrograms stand for those of a guest, whose disks are files: they log what they are asked for. mkfs writes
// what mkfs.ext4 does, the magic number of a superblock.
var guestPrograms = map[string]string{
	"mkfs.ext4":  `echo "mkfs ${2##*/}" >>"$LOG"; printf '\123\357' | dd of="$2" bs=1 seek=1080 conv=notrunc status=none`,
	"mount":      `echo "mount ${1##*/} ${2##*/}" >>"$LOG"; [ -s "$1" ]`,
	"mountpoint": `exit 1`, "blockdev": `wc -c <"$2"`, "resize2fs": `echo "grow ${1##*/}" >>"$LOG"`,
}

// bootGuest runs a mount script on the disks in a folder, and returns what it did.
func bootGuest(t *testing.T, disks, script string) string {
	t.Helper()
	programs := t.TempDir()
	for name, text := range guestPrograms {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	log := filepath.Join(programs, "log")
	guest := exec.Command("sh", "-c", strings.NewReplacer("/dev/", disks+"/", "2>"+disks+"/null", "2>/dev/null", ">"+disks+"/null", ">/dev/null", "/mnt/", disks+"/").Replace(script))
	guest.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "LOG="+log)
	said, err := guest.CombinedOutput()
	did, readErr := os.ReadFile(log)
	if readErr != nil && !os.IsNotExist(readErr) {
		t.Fatal(readErr)
	}
	if err != nil {
		return string(did) + "failed: " + strings.ReplaceAll(string(said), disks+"/", "")
	}
	return string(did)
}

// A disk is formatted once, while it is blank from end to end, whatever the length of its name. One that holds
// anything, and one that cannot be read, is never formatted, and keeps no other from being mounted.
func TestFormattedOnce(t *testing.T) {
	disks := t.TempDir()
	put := func(name string, size int, at int, content string) {
		t.Helper()
		data := make([]byte, size)
		copy(data[at:], content)
		if err := os.WriteFile(filepath.Join(disks, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const size = 4 << 20
	put("vdb", size, 0, "")                // blank
	put("vdc", size, size-512, "EFI PART") // nothing at its beginning
	put("vdd", 1000, 0, "")                // not even a MiB can be read of it
	put("vde", size, 0, "partitions")      // Lima has made one on it
	put("vde1", size, 1080, "\123\357")
	put("vdf", size, 0, "no file system here")
	script := lima.MountScript([]string{"shop.database", "tail", "short", "old", "raw", "none"}, []string{"ext4", "ext4", "ext4", "ext4", "", ""}, []string{"", "", "", "", "/mnt/raw", ""})
	first := bootGuest(t, disks, script)
	const broken = "failed: vmctl: vdd could not be read\n"
	want := "mkfs vdb\nmount vdb lima-shop.database\ngrow vdb\nmount vdc lima-tail\ngrow vdc\nmount vde1 lima-old\ngrow vde1\nmount vdf raw\ngrow vdf\n" + broken
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("the first boot (-want +got):\n%s", diff)
	}
	second := bootGuest(t, disks, script)
	if diff := cmp.Diff(strings.TrimPrefix(want, "mkfs vdb\n"), second); diff != "" {
		t.Errorf("the second boot (-want +got):\n%s", diff)
	}
}

// A start leaves no formatting to Lima, also in the definition of an instance that an older vmctl has made.
func TestStartKeepsDisks(t *testing.T) {
	l := newLab(t)
	l.do(dev, providers.Stop)
	doc, err := yamltext.Parse(l.read("lab.dev", "lima.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	doc["additionalDisks"] = []any{map[string]any{"name": "lab.cache", "format": true, "fsType": "ext4"}}
	old, err := yamltext.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	l.write(old, "lab.dev", "lima.yaml")
	l.do(dev, providers.Start)
	if now := l.read("lab.dev", "lima.yaml"); !strings.Contains(now, "format: false") || strings.Contains(now, "format: true") {
		t.Errorf("it was started with\n%s", now)
	}
}
