// Package qcow2 reads the header of a qcow2 disk image. For any other file it describes the
// content, and returns the command that makes an image of it.
//
// The format is QEMU's, docs/interop/qcow2.txt.
package qcow2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Header holds the fields of the header of an image.
type Header struct {
	Version     uint32
	VirtualSize uint64 // bytes of the disk that a guest sees
	BackingFile string // "": the image stands for itself
	DataFile    bool   // its content is in another, raw file
	Encrypted   bool
	Dirty       bool // it was in use when its writer ended: its counts may be wrong
	Corrupt     bool // QEMU found it damaged
	Extended    bool // it has a feature that a reader must know and this package does not

	tables      uint64 // end offset of the last of the tables that every image has
	l1At, l1    uint64 // offset and entries of the table of tables
	clusterBits uint32
	extendedL2  bool
}

// Features that a reader must know (incompatible_features).
const (
	featureDirty = 1 << iota
	featureCorrupt
	featureDataFile
	featureCompression // another way to compress: QEMU reads it
	featureExtendedL2
)

const (
	magic        = "QFI\xfb"
	headerSize2  = 72
	headerSize3  = 104
	nameLimit    = 1023
	minClusters  = 9
	maxClusters  = 21
	maxL1Entries = 32 << 20 / 8 // QEMU's own bound
)

// Read reads the header of a file of size bytes, and checks that the whole disk is in the
// file. It fails with a *FormatError if the file is no image, or too short to be a whole
// one.
func Read(r io.ReaderAt, size int64) (Header, error) {
	begin := make([]byte, max(headerSize3, probeSize))
	n, err := r.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Header{}, fmt.Errorf("read its header: %w", err)
	}
	begin = begin[:n]
	if !bytes.HasPrefix(begin, []byte(magic)) {
		return Header{}, describe(begin)
	}
	if n < headerSize2 {
		return Header{}, short(size)
	}
	h, raw := Header{}, begin
	h.Version = binary.BigEndian.Uint32(raw[4:])
	if h.Version != 2 && h.Version != 3 {
		return Header{}, &FormatError{
			Seen: fmt.Sprintf("it is a QEMU image of version %d, and a virtual machine needs version 2 or 3", h.Version), Fix: Convert,
		}
	}
	h.VirtualSize = binary.BigEndian.Uint64(raw[24:])
	h.Encrypted = binary.BigEndian.Uint32(raw[32:]) != 0
	if h.Version == 3 {
		if n < headerSize3 {
			return Header{}, short(size)
		}
		h.features(binary.BigEndian.Uint64(raw[72:]))
	}
	if err := h.readTables(raw); err != nil {
		return Header{}, err
	}
	if h.BackingFile, err = backing(r, raw); err != nil {
		return Header{}, err
	}
	return h, h.checkComplete(r, uint64(max(size, 0)))
}

func (h *Header) features(bits uint64) {
	h.Dirty = bits&featureDirty != 0
	h.Corrupt = bits&featureCorrupt != 0
	h.DataFile = bits&featureDataFile != 0
	h.extendedL2 = bits&featureExtendedL2 != 0
	h.Extended = bits&^(featureDirty|featureCorrupt|featureDataFile|featureCompression|featureExtendedL2) != 0
}

// readTables finds the tables that every image has.
func (h *Header) readTables(raw []byte) error {
	bits := binary.BigEndian.Uint32(raw[20:])
	l1, l1At := uint64(binary.BigEndian.Uint32(raw[36:])), binary.BigEndian.Uint64(raw[40:])
	counts, countsAt := uint64(binary.BigEndian.Uint32(raw[56:])), binary.BigEndian.Uint64(raw[48:])
	const far = 1 << 56 // offsets have 56 bits
	if bits < minClusters || bits > maxClusters || l1 > maxL1Entries || l1At >= far || countsAt >= far || h.VirtualSize >= 1<<63 {
		return &FormatError{Seen: "its header makes no sense: the file is damaged", Fix: FetchAgain}
	}
	h.l1At, h.l1, h.clusterBits = l1At, l1, bits
	h.tables = max(l1At+l1*8, countsAt+counts<<bits)
	return nil
}

// backing reads the name of the backing file; "" if there is none.
func backing(r io.ReaderAt, raw []byte) (string, error) {
	at, n := binary.BigEndian.Uint64(raw[8:]), binary.BigEndian.Uint32(raw[16:])
	if at == 0 || n == 0 {
		return "", nil
	}
	if n > nameLimit || at > 1<<maxClusters {
		return "", &FormatError{Seen: "its header makes no sense: the file is damaged", Fix: FetchAgain}
	}
	name := make([]byte, n)
	if _, err := r.ReadAt(name, int64(at)); err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the name of its backing file: %w", err)
	}
	return string(name), nil
}

func short(size int64) error {
	return &FormatError{
		Seen: fmt.Sprintf("it ends in the middle, after %d bytes: it was not copied or downloaded to its end", size), Fix: FetchAgain,
	}
}

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
