package main

import (
	"path/filepath"
	"testing"
)

// info reads a disk with qemu-img.
func info(t *testing.T, path string) string {
	t.Helper()
	return tool(t, "qemu-img", "info", "--output=json", path)
}

// A disk has the format that was asked for, and is at its path only when it is whole.
//
// Trap 11: limactl disk create of Lima v2.2.0 checks its --format, and makes qcow2 whatever that says: CreateDisk of its
// package proxyimgutil has no parameter for it.
func TestDisksHaveTheirFormat(t *testing.T) {
	needs(t, "qemu-img")
	for _, format := range []string{"raw", "qcow2"} {
		t.Run(format, func(t *testing.T) {
			h := newHome(t)
			path := filepath.Join(h.dir, "datadisk")
			left := filepath.Join(h.dir, ".datadisk.1.tmp")
			h.write(left, "of a command that was killed")

			h.run("", "disk", "make", path, format, "1000000")
			contains(t, info(t, path), `"format": "`+format+`"`)
			contains(t, info(t, path), `"virtual-size": 1000448`)
			if got := h.files(); got != "datadisk" {
				t.Errorf("files %q, want the disk alone", got)
			}

			h.run("", "disk", "make", path, format, "1000000")
			_, failed := h.try("", "disk", "make", path, format, "2000000")
			contains(t, failed, "a "+format+" disk of 1000448 bytes is there")

			h.run("", "disk", "grow", path, format, "2000000")
			contains(t, info(t, path), `"virtual-size": 2000384`)
			h.run("", "disk", "grow", path, format, "2000000")
			_, failed = h.try("", "disk", "grow", path, format, "1000000")
			contains(t, failed, "it has 2000384 bytes: a disk cannot shrink to 1000448")
			contains(t, info(t, path), `"virtual-size": 2000384`)

			other := map[string]string{"raw": "qcow2", "qcow2": "raw"}[format]
			_, failed = h.try("", "disk", "grow", path, other, "3000000")
			contains(t, failed, "its format is "+format+", not "+other)
		})
	}
}

func TestDiskArguments(t *testing.T) {
	h := newHome(t)
	for _, c := range []struct{ format, size, want string }{
		{"vmdk", "1000000", "the format of a disk is raw or qcow2"},
		{"raw", "1GiB", "the size of a disk is a number of bytes"},
		{"raw", "-1", "flag"},
		{"raw", "0", "the size of a disk is a number of bytes"},
	} {
		_, failed := h.try("", "disk", "make", filepath.Join(h.dir, "d"), c.format, c.size)
		contains(t, failed, c.want)
	}
	if got := h.files(); got != "" {
		t.Errorf("it made %s", got)
	}
}
