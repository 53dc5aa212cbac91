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
			if hasHugeExponent(t.Bytes) {
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

// hasHugeExponent reports whether a text contains a number with an exponent of more than three digits,
// or something that looks like one.
func hasHugeExponent(text []byte) bool {
	const most = 3
	isDigit := func(c byte) bool { return '0' <= c && c <= '9' }
	for digits, i := 0, len(text)-1; i >= 0; i-- {
		switch c := text[i]; {
		case isDigit(c):
			digits++
			continue
		case c != 'e' && c != 'E' && c != '+' && c != '-':
		case digits <= most:
		case c == 'e', c == 'E', i > 0 && (text[i-1] == 'e' || text[i-1] == 'E'):
			return true
		}
		digits = 0
	}
	return false
}

// maxValueBytes bounds a value: its texts in bytes, and for each part a little. A
// few lines that double each other would fill all memory.
const maxValueBytes = 64 << 20

// measured holds what is known of a value after measure.
type measured struct {
	left    int  // bytes that the value may still have; less than 0: it is too large, and the rest was not measured
	pending bool // it is not wholly known
}

// measure compares a value with maxValueBytes. It reads each part once: a set sorts its elements for that.
func measure(v cty.Value) measured {
	m := measured{left: maxValueBytes}
	m.add(v)
	return m
}

func (m measured) tooLarge() bool { return m.left < 0 }

func (m *measured) add(v cty.Value) {
	const part = 64 // less than any part takes
	v, _ = v.Unmark()
	m.left -= part
	switch {
	case m.tooLarge():
	case !v.IsKnown():
		m.pending = true
	case v.IsNull():
	case v.Type() == cty.String:
		m.left -= len(v.AsString())
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next() && !m.tooLarge(); {
			_, element := it.Element()
			m.add(element)
		}
	}
}
