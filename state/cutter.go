package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// cutter cuts JSON into the texts of its parts, which it does not copy. The zero value is ready.
type cutter struct {
	from    jsontext.Decoder
	lenient jsontext.Options // nil before the first use
}

// members returns the members of a JSON object, nil of null. Of a name that occurs twice the last one counts.
func (c *cutter) members(text []byte) (all map[string]json.RawMessage, err error) {
	err = c.each(text, '{', func() error {
		name, err := c.from.ReadToken()
		if err != nil {
			return err
		}
		if all == nil {
			all = make(map[string]json.RawMessage, min(len(text)/shortMember, manyMembers))
		}
		key := name.String()
		all[key], err = c.next(text)
		return err
	})
	if all == nil && err == nil && !isNull(text) {
		all = map[string]json.RawMessage{}
	}
	return all, err
}

// A map of members has room for one member for each so many bytes of text, up to so many members.
const shortMember, manyMembers = 24, 32

// elements returns the elements of a JSON array, none of null.
func (c *cutter) elements(text []byte) (all []json.RawMessage, err error) {
	err = c.each(text, '[', func() error {
		element, err := c.next(text)
		all = append(all, element)
		return err
	})
	return all, err
}

// each calls f at the start of each part of an object or an array. It does not call it for null.
func (c *cutter) each(text []byte, begin jsontext.Kind, f func() error) error {
	if c.lenient == nil {
		c.lenient = lenient()
	}
	c.from.Reset(bytes.NewBuffer(text), c.lenient)
	switch first, err := c.from.ReadToken(); {
	case err != nil:
		return err
	case first.Kind() == 'n':
		return nil
	case first.Kind() != begin:
		return fmt.Errorf("unexpected %s", kindWord(first.Kind()))
	}
	for {
		switch c.from.PeekKind() {
		case ']', '}':
			_, err := c.from.ReadToken()
			return err
		default:
			if err := f(); err != nil {
				return err
			}
		}
	}
}

// next returns the text of the next value in text.
func (c *cutter) next(text []byte) (json.RawMessage, error) {
	v, err := c.from.ReadValue()
	end := int(c.from.InputOffset())
	return json.RawMessage(text[end-len(v) : end : end]), err
}

func isNull(text []byte) bool { return string(bytes.TrimSpace(text)) == "null" }
