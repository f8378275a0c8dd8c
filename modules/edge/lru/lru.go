package lru

import "sync"

// Key is a SHA-256 sum; its first byte picks the shard.
type Key = [32]byte

// shards is a power of two well above the processors of a node.
const shards = 32

// Cache is a bounded map. It is safe for concurrent use.
type Cache[V any] struct {
	shards [shards]shard[V]
}

type shard[V any] struct {
	mu      sync.Mutex
	max     int
	entries map[Key]*entry[V]
	root    entry[V] // root.next is the most recently used
}

type entry[V any] struct {
	key        Key
	value      V
	prev, next *entry[V]
}

// New makes a cache of about most entries.
func New[V any](most int) *Cache[V] {
	c := &Cache[V]{}
	for i := range c.shards {
		s := &c.shards[i]
		s.max = max(1, most/shards)
		s.clear()
	}
	return c
}

func (c *Cache[V]) shard(k Key) *shard[V] { return &c.shards[k[0]%shards] }

// Get returns the value of a key.
func (c *Cache[V]) Get(k Key) (V, bool) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[k]
	if !ok {
		var none V
		return none, false
	}
	e.unlink()
	s.front(e)
	return e.value, true
}

// Put sets the value of a key.
func (c *Cache[V]) Put(k Key, v V) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[k]; ok {
		e.value = v
		e.unlink()
		s.front(e)
		return
	}
	if len(s.entries) >= s.max {
		last := s.root.prev
		last.unlink()
		delete(s.entries, last.key)
	}
	e := &entry[V]{key: k, value: v}
	s.entries[k] = e
	s.front(e)
}

// Delete removes a key.
func (c *Cache[V]) Delete(k Key) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[k]; ok {
		e.unlink()
		delete(s.entries, k)
	}
}

// Clear removes everything.
func (c *Cache[V]) Clear() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.clear()
		s.mu.Unlock()
	}
}

// Len returns how many entries there are.
func (c *Cache[V]) Len() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += len(s.entries)
		s.mu.Unlock()
	}
	return n
}

func (s *shard[V]) clear() {
	s.entries = map[Key]*entry[V]{}
	s.root.prev, s.root.next = &s.root, &s.root
}

func (s *shard[V]) front(e *entry[V]) {
	e.prev, e.next = &s.root, s.root.next
	e.prev.next, e.next.prev = e, e
}

func (e *entry[V]) unlink() { e.prev.next, e.next.prev = e.next, e.prev }
