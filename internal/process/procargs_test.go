package process_test

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/internal/process"
)

func procargs(count uint32, rest string) []byte {
	return append(binary.NativeEndian.AppendUint32(nil, count), rest...)
}

func TestProcargs(t *testing.T) {
	exe, argv, err := process.ParseProcargs(procargs(3, "/bin/a b\x00\x00\x00\x00a\x00\x00one two\x00HOME=/root\x00"))
	must(t, err)
	if diff := cmp.Diff([]string{"/bin/a b", "a", "", "one two"}, append([]string{exe}, argv...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for want, data := range map[string][]byte{
		"the kernel's argument list has 3 bytes":       []byte("abc"),
		"the kernel's argument list ends in the path":  procargs(1, "/bin/a"),
		"the kernel's argument list ends after 1 of 2": procargs(2, "/bin/a\x00a\x00b"),
	} {
		if _, _, err := process.ParseProcargs(data); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestProcargsOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		_, argv, err := process.ParseProcargs(data)
		if err == nil && len(argv) > len(data) {
			t.Errorf("%d arguments of %d bytes", len(argv), len(data))
		}
	})
}
