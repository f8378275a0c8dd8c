package lru

import "testing"

func key(shard, n byte) Key { return Key{0: shard, 1: n} }

func TestCache_LeastRecentlyUsedGoesFirst(t *testing.T) {
	t.Parallel()
	c := New[int](2 * shards) // two in each shard
	c.Put(key(0, 1), 1)
	c.Put(key(0, 2), 2)
	if _, ok := c.Get(key(0, 1)); !ok {
		t.Fatal("an entry is missing before the cache is full")
	}
	c.Put(key(0, 3), 3)
	for n, want := range map[byte]bool{1: true, 2: false, 3: true} {
		if _, ok := c.Get(key(0, n)); ok != want {
			t.Errorf("entry %d present: %t, want %t", n, ok, want)
		}
	}
}

func TestCache_StaysWithinItsBound(t *testing.T) {
	t.Parallel()
	c := New[int](4 * shards)
	for i := range 256 {
		for n := range 20 {
			c.Put(key(byte(i), byte(n)), n)
		}
	}
	if got := c.Len(); got != 4*shards {
		t.Errorf("%d entries, want %d", got, 4*shards)
	}
	c.Clear()
	if got := c.Len(); got != 0 {
		t.Errorf("%d entries after Clear", got)
	}
}

func TestCache_DeletedAndReplaced(t *testing.T) {
	t.Parallel()
	c := New[int](shards * 8)
	c.Put(key(1, 1), 1)
	c.Put(key(1, 1), 2)
	if v, _ := c.Get(key(1, 1)); v != 2 {
		t.Errorf("value %d, want the later one", v)
	}
	c.Delete(key(1, 1))
	c.Delete(key(1, 1))
	if _, ok := c.Get(key(1, 1)); ok {
		t.Error("a deleted entry is still there")
	}
}
