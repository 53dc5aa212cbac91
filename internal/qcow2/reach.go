package qcow2

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// What an entry of a table says beside an offset.
const (
	entryOffset     = 0x00ff_ffff_ffff_fe00
	entryCompressed = 1 << 62
	entryZeros      = 1 // reads as zeros, whatever is there
)

// checkComplete fails if a part of the disk lies beyond the end of the file: QEMU would
// read zeros there, and say nothing.
func (h Header) checkComplete(r io.ReaderAt, size uint64) error {
	if h.tables > size {
		return short(int64(size))
	}
	tables, err := entries(r, h.l1At, h.l1)
	if err != nil {
		return err
	}
	perTable := uint64(1) << (h.clusterBits - 3)
	for _, t := range tables {
		at := t & entryOffset
		if at == 0 {
			continue
		}
		if at+1<<h.clusterBits > size {
			return short(int64(size))
		}
		clusters, err := entries(r, at, perTable)
		if err != nil {
			return err
		}
		if h.beyond(clusters, size) {
			return short(int64(size))
		}
	}
	return nil
}

// beyond reports whether one of the clusters of a table begins at or behind the end.
func (h Header) beyond(clusters []uint64, size uint64) bool {
	step := 1
	if h.extendedL2 { // every second entry is a bitmap
		step = 2
	}
	compressedOffset := uint64(1)<<(62-(h.clusterBits-8)) - 1
	for i := 0; i < len(clusters); i += step {
		c := clusters[i]
		at := c & entryOffset
		switch {
		case c&entryCompressed != 0:
			at = c & compressedOffset
		case c&entryZeros != 0 && !h.extendedL2:
			continue
		}
		if at >= size {
			return true
		}
	}
	return false
}

func entries(r io.ReaderAt, at, n uint64) ([]uint64, error) {
	raw := make([]byte, n*8)
	if _, err := r.ReadAt(raw, int64(at)); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read its tables: %w", err)
	}
	all := make([]uint64, n)
	for i := range all {
		all[i] = binary.BigEndian.Uint64(raw[i*8:])
	}
	return all, nil
}
