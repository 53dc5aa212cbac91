package sshfs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/sshfs"
)

func TestMountsOfHostileNames(t *testing.T) {
	const text = `22 1 0:20 / / rw - ext4 /dev/sda rw
30 22 0:38 / /m/a\040b\134"'\011c rw,nosuid shared:1 master:2 - fuse.sshfs vmctl-1:/w\0401 rw
31 22 0:39 / /hidden rw - fuse.sshfs vmctl-2:/w rw
32 22 0:40 / /hidden rw - tmpfs none rw
33 22 0:41 / /m/\04 rw - fuse.sshfs vmctl-3:/w rw
`
	got, err := sshfs.PathsOf(text)
	want := []sshfs.Mount{{Source: "vmctl-1:/w 1", Path: "/m/a b\\\"'\tc"}, {Source: "vmctl-3:/w", Path: `/m/\04`}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("mounts: %v (-want +got):\n%s", err, diff)
	}
	if _, err := sshfs.PathsOf("no list\n"); err == nil {
		t.Error("a line that is no mount was accepted")
	}
}
