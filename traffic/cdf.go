package traffic

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"nicprof/internal/config"
)

// readCDF takes {cdf: FILE, read: step|linear, unit: UNIT}, whose parts must
// all be there: files of the same form are read either way, and nothing in them
// tells what they count. A number is as many of the first unit as there are in
// one of the file's. Complaints about what is at path go to found, and the
// result is nil then.
func readCDF(at string, in map[string]any, dir string, units []string, found *config.Findings) (*Sizes, error) {
	complaints := len(*found)
	known := []string{"cdf", "read", "unit"}
	for _, key := range sortedKeys(in) {
		if !slices.Contains(known, key) {
			found.Add(at+"."+key, "unknown key; known are %s", strings.Join(known, ", "))
		}
	}
	path, ok := in["cdf"].(string)
	if !ok {
		found.Add(at+".cdf", "expected the path of a file of lines: %s, probability", units[0])
	}
	switch read := in["read"]; read {
	case "step", "linear":
	case nil:
		found.Add(at, "expected read: step (sizes are those in the file) or linear (and all between them)")
	default:
		found.Add(at+".read", "%v is neither step nor linear", read)
	}
	unit := 1.0
	names := strings.Join(units, " or ")
	switch u := in["unit"].(type) {
	case nil:
		found.Add(at, "expected unit: %s, or the number of %s in one", names, units[0])
	case string:
		if !slices.Contains(units, u) {
			found.Add(at+".unit", "%q is not a unit; expected %s, or the number of %s in one", u, names, units[0])
		}
	case float64:
		if unit = u; !(u > 0 && u <= MaxMessageBytes) {
			found.Add(at+".unit", "%v is not a unit; expected %s, or the number of %s in one", u, names, units[0])
		}
	default:
		found.Add(at+".unit", "expected %s, or the number of %s in one", names, units[0])
	}
	if len(*found) > complaints {
		return nil, nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	f, err := os.Open(path)
	if err != nil {
		found.Add(at+".cdf", "%v", err)
		return nil, nil
	}
	defer f.Close()
	return ReadSizes(f, path, in["read"] == "linear", unit)
}
