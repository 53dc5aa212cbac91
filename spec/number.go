package spec

import (
	"math"
	"math/big"
	"strconv"
)

// maxNumberBits bounds the numbers whose digits are written down one by one:
// the time that takes grows with the square of their number.
const maxNumberBits = 4096

// FormatNumber writes a number with every digit, as JSON reads it, too. Of a number beyond 4096
// bits it writes the first digits and the power of ten.
func FormatNumber(n *big.Float) string {
	if !huge(n) {
		return n.Text('f', -1)
	}
	mantissa := new(big.Float)
	exponent := n.MantExp(mantissa)
	m, _ := mantissa.Float64()
	log := math.Log10(math.Abs(m)) + float64(exponent)*math.Log10(2)
	power := math.Floor(log)
	digits := math.Copysign(math.Pow(10, log-power), m)
	return strconv.FormatFloat(digits, 'f', 6, 64) + "e" + strconv.FormatFloat(power, 'f', 0, 64)
}

// huge reports whether the digits of a number are too many to write down.
func huge(n *big.Float) bool {
	if n.IsInf() || n.Sign() == 0 {
		return false
	}
	exponent := n.MantExp(nil)
	return exponent > maxNumberBits || exponent < -maxNumberBits
}
