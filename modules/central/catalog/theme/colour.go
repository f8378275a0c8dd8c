package theme

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// colour is one in sRGB.
type colour [3]uint8

// parseColour reads #rgb and #rrggbb.
func parseColour(s string) (colour, bool) {
	hex, ok := strings.CutPrefix(s, "#")
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if !ok || err != nil || len(hex) != 6 {
		return colour{}, false
	}
	return colour{uint8(n >> 16), uint8(n >> 8 & 0xff), uint8(n & 0xff)}, true //nolint:gosec // 24 bits
}

// String returns the colour as #rrggbb.
func (c colour) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// luminance is the relative luminance of WCAG 2.2.
func (c colour) luminance() float64 {
	var linear [3]float64
	for i, v := range c {
		s := float64(v) / 255
		if s <= 0.04045 {
			linear[i] = s / 12.92
		} else {
			linear[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*linear[0] + 0.7152*linear[1] + 0.0722*linear[2]
}

// contrast returns the contrast ratio of two colours, 1 to 21.
func contrast(a, b colour) float64 {
	l, m := a.luminance(), b.luminance()
	return (max(l, m) + 0.05) / (min(l, m) + 0.05)
}

// mix returns c with a share (0 to 1) of other.
func mix(c, other colour, share float64) colour {
	var out colour
	for i := range out {
		out[i] = uint8(math.Round(float64(c[i])*(1-share) + float64(other[i])*share))
	}
	return out
}

// readable returns c, moved towards another colour as far as it takes to be
// read on each of the grounds.
func readable(c, towards colour, ratio float64, grounds ...colour) colour {
	const steps = 20
	for i := range steps {
		if m := mix(c, towards, float64(i)/steps); enough(m, ratio, grounds...) {
			return m
		}
	}
	return towards
}

func enough(c colour, ratio float64, grounds ...colour) bool {
	for _, g := range grounds {
		if contrast(c, g) < ratio {
			return false
		}
	}
	return true
}
