package mountinfo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/mountinfo"
)

func TestMountsOfHostileNames(t *testing.T) {
	const text = `22 1 0:20 / / rw - ext4 /dev/sda rw
30 22 0:38 / /m/a\040b\134"'\011c rw,nosuid shared:1 master:2 - fuse.sshfs host:/w\0401 rw
33 22 0:41 / /m/\04 rw - tmpfs none rw
`
	got, err := mountinfo.Parse(text)
	want := []mountinfo.Entry{
		{Kind: "ext4", Source: "/dev/sda", Path: "/"},
		{Kind: "fuse.sshfs", Source: "host:/w 1", Path: "/m/a b\\\"'\tc"},
		{Kind: "tmpfs", Source: "none", Path: `/m/\04`},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("mounts: %v (-want +got):\n%s", err, diff)
	}
	if _, err := mountinfo.Parse("no list\n"); err == nil {
		t.Error("a line that is no mount was accepted")
	}
}
