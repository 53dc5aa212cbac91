package qcow2_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vmctl/internal/qcow2"
)

// image is an empty image of 64 KiB clusters, as qemu-img makes it: the header,
// the reference counts, the table of the disk.
type image []byte

const (
	version     = 4
	backingAt   = 8
	backingSize = 16
	clusterBits = 20
	virtual     = 24
	encryption  = 32
	l1Entries   = 36
	l1At        = 40
	countsAt    = 48
	counts      = 56
	features    = 72

	l2     = 4 << 16 // a table of clusters
	data   = 5 << 16 // a cluster
	copied = 1 << 63 // nobody else refers to it
)

func newImage(v uint32) image {
	b := make(image, 6<<16)
	copy(b, "QFI\xfb")
	b.set32(version, v)
	b.set32(clusterBits, 16)
	b.set64(virtual, 10<<30)
	b.set32(l1Entries, 20)
	b.set64(l1At, 3<<16)
	b.set64(countsAt, 1<<16)
	b.set32(counts, 1)
	b.set64(3<<16, copied|l2)
	b.set64(l2, copied|data)
	b.set64(l2+8, (data+1<<16)|1) // zeros, that have their place beyond the end
	return b
}

func (b image) set32(at int, v uint32) { binary.BigEndian.PutUint32(b[at:], v) }

func (b image) set64(at int, v uint64) { binary.BigEndian.PutUint64(b[at:], v) }

func (b image) with(change func(image)) image {
	c := bytes.Clone(b)
	change(c)
	return c
}

func (b image) backedBy(name string) image {
	return b.with(func(b image) {
		b.set64(backingAt, 512)
		b.set32(backingSize, uint32(len(name)))
		copy(b[512:], name)
	})
}

func read(b []byte) (qcow2.Header, error) {
	return qcow2.Read(bytes.NewReader(b), int64(len(b)))
}

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		file image
		want qcow2.Header
	}{
		{"version 3", newImage(3), qcow2.Header{Version: 3, VirtualSize: 10 << 30}},
		{"version 2 has no features", newImage(2).with(func(b image) { b.set64(features, 1<<63) }), qcow2.Header{Version: 2, VirtualSize: 10 << 30}},
		{"on another", newImage(3).backedBy("base image.qcow2"), qcow2.Header{Version: 3, VirtualSize: 10 << 30, BackingFile: "base image.qcow2"}},
		{"compressed", newImage(3).with(func(b image) { b.set64(features, 1<<3) }), qcow2.Header{Version: 3, VirtualSize: 10 << 30}},
		{"encrypted", newImage(3).with(func(b image) { b.set32(encryption, 2) }), qcow2.Header{Version: 3, VirtualSize: 10 << 30, Encrypted: true}},
		{"in use", newImage(3).with(func(b image) { b.set64(features, 1) }), qcow2.Header{Version: 3, VirtualSize: 10 << 30, Dirty: true}},
		{"damaged", newImage(3).with(func(b image) { b.set64(features, 2) }), qcow2.Header{Version: 3, VirtualSize: 10 << 30, Corrupt: true}},
		{"elsewhere", newImage(3).with(func(b image) { b.set64(features, 4) }), qcow2.Header{Version: 3, VirtualSize: 10 << 30, DataFile: true}},
		{"newer", newImage(3).with(func(b image) { b.set64(features, 1<<9) }), qcow2.Header{Version: 3, VirtualSize: 10 << 30, Extended: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(qcow2.Header{})); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStandalone(t *testing.T) {
	good := newImage(3)
	for _, tt := range []struct {
		name, want string // what is seen, and the fix
		file       image
	}{
		{"whole", "", good},
		{"on another", `it holds only what differs from its backing file "/x/base\x1b.img": qemu-img convert -O qcow2 FILE NEW.qcow2`, good.backedBy("/x/base\x1b.img")},
		{"elsewhere", "its content is in another file (an external data file): qemu-img convert -O qcow2 FILE NEW.qcow2", good.with(func(b image) { b.set64(features, 4) })},
		{"encrypted", "it is encrypted: decrypt it: qemu-img convert --image-opts … -O qcow2 NEW.qcow2", good.with(func(b image) { b.set32(encryption, 1) })},
		{"in use", "it was not closed by who wrote it last: qemu-img check -r all FILE", good.with(func(b image) { b.set64(features, 1) })},
		{"damaged", "QEMU has marked it as damaged: qemu-img check -r all FILE", good.with(func(b image) { b.set64(features, 2) })},
		{"newer", "it uses a feature that is newer than this vmctl: qemu-img convert -O qcow2 FILE NEW.qcow2", good.with(func(b image) { b.set64(features, 1<<40) })},
		{"of nothing", "its disk has no bytes: fetch or copy it again, and compare its size with the original's", good.with(func(b image) { b.set64(virtual, 0) })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := read(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			if got := words(t, h.Standalone()); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func words(t *testing.T, err error) string {
	t.Helper()
	var f *qcow2.FormatError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &f):
		t.Fatalf("%v is no FormatError", err)
	}
	return f.Error() + ": " + string(f.Fix)
}

func TestReadOfWhatIsNoImage(t *testing.T) {
	good := newImage(3)
	disk := make([]byte, 4096)
	copy(disk[510:], "\x55\xaa")
	const (
		convert = ": qemu-img convert -O qcow2 FILE NEW.qcow2"
		again   = ": fetch or copy it again, and compare its size with the original's"
		damaged = "its header makes no sense: the file is damaged" + again
	)
	for _, tt := range []struct {
		name, want string
		file       []byte
	}{
		{"nothing", "it is empty" + again, nil},
		{"text", `it begins with "hello"` + convert, []byte("hello")},
		{"bytes", `it begins with "\x00\x1b[2J"` + convert, []byte("\x00\x1b[2J")},
		{"a raw disk", "it is a raw disk image: qemu-img convert -f raw -O qcow2 FILE NEW.qcow2", disk},
		{"vmdk", "it is a VMware disk (vmdk)" + convert, []byte("KDMV\x01")},
		{"vhdx", "it is a Hyper-V disk (vhdx)" + convert, []byte("vhdxfileQ")},
		{"xz", "it is compressed by xz: unpack it first", []byte("\xfd7zXZ\x00\x00")},
		{"a web page", "it is a web page: the address leads to a page about the image, or to a login: look at it, and use the address of the image itself", []byte("\n <!DOCTYPE HTML>\n<title>")},
		{"the first version", "it is a QEMU image of version 1, and a virtual machine needs version 2 or 3" + convert, good.with(func(b image) { b.set32(version, 1) })},
		{"the header's beginning", "it ends in the middle, after 60 bytes: it was not copied or downloaded to its end" + again, good[:60]},
		{"the header of version 2", "it ends in the middle, after 80 bytes: it was not copied or downloaded to its end" + again, good[:80]},
		{"half of it", "it ends in the middle, after 131072 bytes: it was not copied or downloaded to its end" + again, good[:2<<16]},
		{"all but the last cluster", "it ends in the middle, after 327680 bytes: it was not copied or downloaded to its end" + again, good[:data]},
		{"all but the last table", "it ends in the middle, after 262144 bytes: it was not copied or downloaded to its end" + again, good[:l2]},
		{"a compressed cluster beyond the end", "it ends in the middle, after 393216 bytes: it was not copied or downloaded to its end" + again, good.with(func(b image) { b.set64(l2+16, 1<<62|1<<20) })},
		{"clusters of no size", damaged, good.with(func(b image) { b.set32(clusterBits, 64) })},
		{"a table of no end", damaged, good.with(func(b image) { b.set32(l1Entries, 1<<31) })},
		{"a table nowhere", damaged, good.with(func(b image) { b.set64(l1At, 1<<63) })},
		{"a name of no end", damaged, good.with(func(b image) { b.set64(backingAt, 512); b.set32(backingSize, 1<<30) })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read(tt.file)
			if got := words(t, err); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errors.New("input/output error") }

func TestReadOfAFileThatCannotBeRead(t *testing.T) {
	_, err := qcow2.Read(broken{}, 100)
	if err == nil || err.Error() != "read its header: input/output error" {
		t.Errorf("error = %v", err)
	}
}

// Whatever a file holds, reading it ends in a header or in words.
func FuzzRead(f *testing.F) {
	good := newImage(3)
	for _, seed := range [][]byte{
		nil, good[:72], good[:104], good[:512], good.backedBy("base"), newImage(2)[:600],
		good.with(func(b image) { b.set64(l1At, 1<<55) })[:200], []byte("<html>"), []byte("KDMV"),
		good.with(func(b image) { b.set32(clusterBits, 21); b.set32(counts, 1<<31); b.set64(countsAt, 1<<55) })[:200],
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		h, err := read(file)
		var format *qcow2.FormatError
		switch {
		case err == nil:
			if len(file) < 72 || h.Version < 2 || len(h.BackingFile) > 1023 {
				t.Errorf("%d bytes make an image: %+v", len(file), h)
			}
		case !errors.As(err, &format):
			t.Errorf("%v is no FormatError", err)
		case strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }):
			t.Errorf("the file's own bytes reach the screen: %q", err)
		}
	})
}
