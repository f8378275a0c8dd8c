package replay

import "time"

// maxRemembered bounds one generation of a [memory]: two of them take some 4
// MiB. What is forgotten early costs a statement, and is refused as well.
const maxRemembered = 32 << 10

// memory are the keys that this process has seen, in two generations: when the
// young one is full or old enough, it becomes the old one, and the old one is
// forgotten.
type memory struct {
	lasts      time.Duration
	young, old map[key]struct{}
	since      time.Time // when the young one began
}

func newMemory(lasts time.Duration) memory {
	return memory{lasts: lasts, young: map[key]struct{}{}}
}

// add tells whether a key is new.
func (m *memory) add(k key, now time.Time) bool {
	if _, ok := m.young[k]; ok {
		return false
	}
	if _, ok := m.old[k]; ok {
		return false
	}
	if len(m.young) >= maxRemembered || now.Sub(m.since) > m.lasts {
		m.young, m.old, m.since = map[key]struct{}{}, m.young, now
	}
	m.young[k] = struct{}{}
	return true
}

// forget removes keys.
func (m *memory) forget(keys map[key]time.Time) {
	for k := range keys {
		delete(m.young, k)
		delete(m.old, k)
	}
}
