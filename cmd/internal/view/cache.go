package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// CacheDocument is `cache list` and, with the downloads that it removed, `cache prune` as JSON.
type CacheDocument struct {
	FormatVersion string     `json:"format_version"`
	Dir           string     `json:"dir"` // of the downloads
	Downloads     []Download `json:"downloads"`
}

// Download is one download that vmctl keeps.
type Download struct {
	Key    string    `json:"key"`
	URL    string    `json:"url"`    // without a password; "": unknown
	SHA256 string    `json:"sha256"` // hex; "": it is not whole
	Size   int64     `json:"size"`   // bytes on the disk
	Since  time.Time `json:"since"`  // its last bytes arrived then
	State  string    `json:"state"`  // whole | part | downloading
}

// Cache lists the downloads that are there, with the command that removes them, or, without one, those that were removed.
func Cache(s Screen, d CacheDocument, prune string) {
	p := &page{screen: s}
	var total int64
	for _, one := range d.Downloads {
		total += one.Size
		p.put(0, 2, in(bold, one.Key), txt(" "), txt(one.State), txt(", "+bytesText(one.Size)+", since "+one.Since.Format(time.RFC3339)+": "), txt(dash(one.URL)))
	}
	switch {
	case len(d.Downloads) == 0 && prune == "":
		p.put(0, 2, txt("Nothing was removed."))
	case len(d.Downloads) == 0:
		p.put(0, 2, txt("There are no downloads in "+d.Dir+"."))
	case prune == "":
		p.put(0, 2, txt(fmt.Sprintf("Removed: %d downloads, %s.", len(d.Downloads), bytesText(total))))
	default:
		p.put(0, 2, txt(fmt.Sprintf("%d downloads in %s, %s in all.", len(d.Downloads), d.Dir, bytesText(total))))
		p.command("To remove them:", prune)
	}
	p.flush()
}

// bytesText writes a number of bytes with the unit that leaves at most three digits before the point.
func bytesText(n int64) string {
	size, units := float64(n), []string{"bytes", "KiB", "MiB", "GiB"}
	for size >= 1000 && len(units) > 1 {
		size, units = size/1024, units[1:]
	}
	return strings.TrimSuffix(strconv.FormatFloat(size, 'f', 1, 64), ".0") + " " + units[0]
}
