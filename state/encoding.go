package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// encode returns v as compact JSON, without the escapes that only HTML needs.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, plainError(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// plainError strips the names of Go types, which mean nothing to a user.
func plainError(err error) error {
	var marshaler *json.MarshalerError
	for errors.As(err, &marshaler) {
		err = marshaler.Err
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%w, at byte %d", err, syntax.Offset)
	}
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return fmt.Errorf("unexpected %s, at byte %d", mistyped.Value, mistyped.Offset)
	}
	return err
}

// decode reads the one JSON value in data. A field that v does not have is an error: writing v
// again would lose it.
func decode(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return plainError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows the end of the content, at byte %d", dec.InputOffset())
	}
	return nil
}
