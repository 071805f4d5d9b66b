// Package near finds the names that a mistyped one may have meant.
package near

// typos is the largest distance of a name that is still near.
const typos = 2

// Of returns the names with the fewest typing errors to word, at most two, in
// the order given.
func Of(word string, names []string) []string {
	var found []string
	nearest := typos
	for _, name := range names {
		d := distance(word, name)
		if d < nearest {
			found, nearest = nil, d
		}
		if d == nearest {
			found = append(found, name)
		}
	}
	return found
}

// distance is the Levenshtein distance of two strings, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
