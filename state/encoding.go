package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// plainError strips the names of Go types and of packages, which mean nothing to a user.
func plainError(err error) error {
	var marshaler *json.MarshalerError
	for errors.As(err, &marshaler) {
		err = marshaler.Err
	}
	var broken *json.SyntaxError
	if errors.As(err, &broken) {
		return fmt.Errorf("%w, at byte %d", err, broken.Offset)
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case errors.As(err, &syntax):
		return fmt.Errorf("%w, at byte %d", syntax.Err, syntax.ByteOffset)
	}
	var mistyped *jsonv2.SemanticError
	switch {
	case !errors.As(err, &mistyped):
		return err
	case errors.Is(err, jsonv2.ErrUnknownName):
		return fmt.Errorf("unknown field %q", mistyped.JSONPointer.LastToken())
	case mistyped.Err != nil:
		return mistyped.Err
	default:
		return fmt.Errorf("unexpected %s, at byte %d", kindWord(mistyped.JSONKind), mistyped.ByteOffset)
	}
}

// kindWord names a kind of JSON value.
func kindWord(k jsontext.Kind) string {
	switch k {
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	default:
		return k.String()
	}
}

// lenient lets a decoder take the JSON that encoding/json takes, which wrote the states of earlier builds.
func lenient() jsontext.Options {
	return jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// decode reads the one JSON value in data. A field that v does not have is an error: writing v
// again would lose it. Of a name that occurs twice the last one counts.
func decode(data []byte, v any) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), lenient())
	if err := jsonv2.UnmarshalDecode(dec, v, jsonv2.RejectUnknownMembers(true)); err != nil {
		return plainError(err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows the end of the content, at byte %d", dec.InputOffset())
	}
	return nil
}
