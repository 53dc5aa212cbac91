package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// upgrade turns the files of one format into files of the next one.
type upgrade struct {
	Snapshot func([]byte) ([]byte, error) // all of state.json
	Entry    func([]byte) ([]byte, error) // one entry of a journal
}

// formats describes the formats that can be read: the newest, and each older one
// from which a chain of upgrades leads to the newest.
type formats struct {
	newest  int
	upgrade map[int]upgrade // by the format that it reads
}

// formats returns the formats of this build, or the ones that a test has set.
func (d documents) formats() formats {
	if d.readableFormats.newest != 0 {
		return d.readableFormats
	}
	return formats{newest: Format, upgrade: upgrades}
}

// header holds the only fields of a snapshot that may be read before its format is known.
type header struct {
	Format  *int   `json:"format"`
	Version string `json:"vmctl_version"`
}

// readHeader reads the format and the version, which are among the first members of a snapshot.
// It fails if the bytes are no snapshot of any format.
func readHeader(data []byte) (header, error) {
	var h header
	if len(bytes.TrimSpace(data)) == 0 {
		return h, errors.New("it is empty")
	}
	err := h.read(json.NewDecoder(bytes.NewReader(data)))
	switch {
	case h.Format == nil && err != nil:
		return h, plainError(err)
	case h.Format == nil:
		return h, errors.New("it does not say its format")
	case *h.Format < 1:
		return h, fmt.Errorf("it says that it has format %d, and no vmctl ever wrote that", *h.Format)
	}
	return h, nil
}

// read reads the members of an object until the head is complete.
func (h *header) read(from *json.Decoder) error {
	if begins, err := from.Token(); err != nil {
		return err
	} else if begins != json.Delim('{') {
		return errors.New("it is no JSON object")
	}
	for from.More() && (h.Format == nil || h.Version == "") {
		name, err := from.Token()
		if err != nil {
			return err
		}
		var into any = new(json.RawMessage)
		switch name {
		case "format":
			into = &h.Format
		case "vmctl_version":
			into = &h.Version
		}
		if err := from.Decode(into); err != nil {
			return err
		}
	}
	return nil
}

func (k formats) snapshot(format int, data []byte) ([]byte, error) {
	return k.chain(format, data, func(u upgrade) func([]byte) ([]byte, error) { return u.Snapshot })
}

func (k formats) entry(format int, data []byte) ([]byte, error) {
	return k.chain(format, data, func(u upgrade) func([]byte) ([]byte, error) { return u.Entry })
}

func (k formats) chain(format int, data []byte, step func(upgrade) func([]byte) ([]byte, error)) ([]byte, error) {
	for ; format < k.newest; format++ {
		u, ok := k.upgrade[format]
		if !ok {
			return nil, fmt.Errorf("it has format %d, which this vmctl cannot read any more", format)
		}
		var err error
		if data, err = step(u)(data); err != nil {
			return nil, fmt.Errorf("turn format %d into %d: %w", format, format+1, err)
		}
	}
	return data, nil
}

// older returns the format of a snapshot that is older than the newest format, else 0.
func (k formats) older(snapshot []byte) int {
	if h, err := readHeader(snapshot); err == nil && *h.Format < k.newest {
		return *h.Format
	}
	return 0
}
