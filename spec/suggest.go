package spec

import "strings"

// DidYouMean ends a sentence about an unknown name: ` Did you mean "memory"?`,
// or nothing where no candidate is near.
func DidYouMean(given string, candidates []string) string {
	if best := nearest(given, candidates); best != "" {
		return ` Did you mean "` + best + `"?`
	}
	return ""
}

// nearest returns the candidate that is most like given, or "" where none is
// near. Of several the first wins.
func nearest(given string, candidates []string) string {
	allowed := 1
	switch length := len([]rune(given)); {
	case length < 2:
		allowed = 0
	case length >= 9:
		allowed = length / 3
	case length >= 5:
		allowed = 2
	}
	best, least := "", allowed+1
	for _, candidate := range candidates {
		if strings.EqualFold(given, candidate) {
			return candidate
		}
		if distance := editDistance(given, candidate, least); distance < least {
			best, least = candidate, distance
		}
	}
	if best != "" || len(given) < 4 {
		return best
	}
	for _, candidate := range candidates {
		if strings.HasPrefix(candidate, given) {
			return candidate
		}
	}
	return ""
}

// editDistance counts the insertions, deletions, substitutions and swaps of
// neighbours that turn a into b. It gives up, with limit, where it cannot be less.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > 200 || len(b) > 200 {
		return limit
	}
	x, y := []rune(a), []rune(b)
	before, last, current := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		current[0] = i
		for j := 1; j <= len(y); j++ {
			change := 1
			if x[i-1] == y[j-1] {
				change = 0
			}
			current[j] = min(last[j]+1, current[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, last, current = last, current, before
	}
	return last[len(y)]
}
