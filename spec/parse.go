package spec

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// parseSource parses HCL that is not too deeply nested for the parser.
func parseSource(src []byte, filename string) (*hcl.File, hcl.Diagnostics) {
	if file := parsePieces(src, filename); file != nil {
		return file, nil
	}
	tokens, _ := hclsyntax.LexConfig(src, filename, hcl.InitialPos) //nolint:errcheck // the parser says the same about bad tokens, and more
	if d := checkTokens(tokens); d != nil {
		return &hcl.File{Bytes: src}, hcl.Diagnostics{d}
	}
	return hclsyntax.ParseConfig(src, filename, hcl.InitialPos)
}

// parsePieces parses a source piece by piece. The scanner keeps all tokens of a text at once, which take
// twenty times the memory of the text itself, and each piece reuses the memory of the one before.
// It returns nil if a piece has a mistake, also one that only the cut has made: whether a text is right
// can be said of all of it alone. What precedes a cut is the same in the piece as in the whole: the scanner reads
// forwards, and a string, comment or block that a cut divides is a mistake in the piece.
func parsePieces(src []byte, filename string) *hcl.File {
	at := hcl.InitialPos
	var all *hcl.File
	for at.Byte < len(src) || all == nil {
		piece := src[at.Byte : at.Byte+pieceLength(src[at.Byte:])]
		if at.Byte > 0 && bytes.HasPrefix(piece, []byte(byteOrderMark)) { // the scanner skips one only where a text begins
			return nil
		}
		file, diags := parsePiece(piece, filename, at)
		if len(diags) > 0 || all != nil && !appendBody(all, file) {
			return nil
		}
		if all == nil {
			all = file
		}
		at = hcl.Pos{Byte: at.Byte + len(piece), Line: at.Line + bytes.Count(piece, []byte("\n")), Column: 1}
	}
	all.Bytes = src
	return all
}

const (
	blockEnd      = "\n}\n" // of nearly every block of a spec
	byteOrderMark = "\ufeff"
)

// pieceLength returns the length of the next piece: up to the last end of a block within maxDepth bytes,
// else up to the first one, else all.
func pieceLength(src []byte) int {
	if n := bytes.LastIndex(src[:min(len(src), maxDepth)], []byte(blockEnd)); n >= 0 {
		return n + len(blockEnd)
	}
	if n := bytes.Index(src, []byte(blockEnd)); n >= 0 {
		return n + len(blockEnd)
	}
	return len(src)
}

// parsePiece parses a part of a source that begins at a position. In maxDepth bytes no more than maxDepth
// tokens can nest.
func parsePiece(src []byte, filename string, at hcl.Pos) (*hcl.File, hcl.Diagnostics) {
	if len(src) > maxDepth || hasHugeExponent(src) {
		tokens, diags := hclsyntax.LexConfig(src, filename, at)
		if d := checkTokens(tokens); d != nil {
			return nil, append(diags, d)
		}
	}
	return hclsyntax.ParseConfig(src, filename, at)
}

// appendBody adds the blocks of another piece to a file. It returns false if it cannot: what is wrong about an attribute
// outside of all blocks depends on the others.
func appendBody(all, piece *hcl.File) bool {
	into, ok := all.Body.(*hclsyntax.Body)
	from, parsed := piece.Body.(*hclsyntax.Body)
	if !ok || !parsed || len(from.Attributes) > 0 {
		return false
	}
	into.Blocks = append(into.Blocks, from.Blocks...)
	into.SrcRange.End, into.EndRange = from.SrcRange.End, from.EndRange
	return true
}
