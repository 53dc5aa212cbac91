package spec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// maxDepth bounds how deeply expressions and blocks nest, operators counted.
// Parser and evaluation recurse once per level, and Go ends a program whose
// stack has no more room.
const maxDepth = 1000

// nestingDepth counts how deep the parser will recurse.
type nestingDepth struct {
	levels []level
	depth  int // sum of all pending
}

// level is one open bracket, quote or template sequence.
type level struct {
	open    hclsyntax.TokenType
	pending int // operators and closed brackets of the expression under way
}

func (n *nestingDepth) top() *level { return &n.levels[len(n.levels)-1] }

func (n *nestingDepth) add() {
	n.top().pending++
	n.depth++
}

func (n *nestingDepth) push(open hclsyntax.TokenType) {
	n.add()
	n.levels = append(n.levels, level{open: open})
}

func (n *nestingDepth) pop() {
	if len(n.levels) == 1 {
		return
	}
	n.reset()
	closed := n.top().open
	n.levels = n.levels[:len(n.levels)-1]
	// The parts of a template do not nest, however many there are.
	if closed == hclsyntax.TokenTemplateInterp {
		n.top().pending--
		n.depth--
	}
}

func (n *nestingDepth) reset() {
	n.depth -= n.top().pending
	n.top().pending = 0
}

// newline ends an expression, but for inside brackets and templates.
func (n *nestingDepth) newline() {
	if len(n.levels) == 1 || n.top().open == hclsyntax.TokenOBrace {
		n.reset()
	}
}

// checkTokens returns a diagnostic for tokens that nest deeper than maxDepth, and for a number
// with so large an exponent that writing it out would take for ever.
func checkTokens(tokens hclsyntax.Tokens) *hcl.Diagnostic {
	n := nestingDepth{levels: make([]level, 1, 16)}
	for _, t := range tokens {
		switch t.Type { //nolint:exhaustive // all other tokens leave the depth as it is
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote,
			hclsyntax.TokenOHeredoc, hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			n.push(t.Type)
		case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen, hclsyntax.TokenCQuote,
			hclsyntax.TokenCHeredoc, hclsyntax.TokenTemplateSeqEnd:
			n.pop()
		case hclsyntax.TokenComma:
			n.reset()
		case hclsyntax.TokenNumberLit:
			if hugeExponent.Match(t.Bytes) {
				return mistake(t.Range, "Number too large", "The exponent of a number has at most three digits.")
			}
		case hclsyntax.TokenNewline:
			n.newline()
		case hclsyntax.TokenPlus, hclsyntax.TokenMinus, hclsyntax.TokenStar, hclsyntax.TokenSlash,
			hclsyntax.TokenPercent, hclsyntax.TokenBang, hclsyntax.TokenEqualOp, hclsyntax.TokenNotEqual,
			hclsyntax.TokenLessThan, hclsyntax.TokenGreaterThan, hclsyntax.TokenLessThanEq,
			hclsyntax.TokenGreaterThanEq, hclsyntax.TokenAnd, hclsyntax.TokenOr, hclsyntax.TokenQuestion,
			hclsyntax.TokenColon, hclsyntax.TokenDot:
			n.add()
		default:
		}
		if n.depth > maxDepth {
			return mistake(t.Range, "Too deeply nested",
				"More than %d expressions or blocks are nested here. Split them up with `locals`.", maxDepth)
		}
	}
	return nil
}

// maxValueBytes bounds a value: its texts in bytes, and for each part a little. A
// few lines that double each other would fill all memory.
const maxValueBytes = 64 << 20

// tooLarge reports whether a value is larger than maxValueBytes. It stops measuring at that size.
func tooLarge(v cty.Value) bool {
	left := maxValueBytes
	return measure(v, &left)
}

func measure(v cty.Value, left *int) bool {
	const part = 64 // less than any part takes
	v, _ = v.Unmark()
	*left -= part
	switch {
	case *left < 0:
		return true
	case !v.IsKnown() || v.IsNull():
		return false
	case v.Type() == cty.String:
		*left -= len(v.AsString())
		return *left < 0
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			if _, element := it.Element(); measure(element, left) {
				return true
			}
		}
	}
	return false
}
