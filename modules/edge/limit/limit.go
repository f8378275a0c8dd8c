package limit

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	// shards keep processors out of each other's way; a power of two well
	// above those of a node.
	shards = 32
	// perShard bounds the memory: 256 Ki buckets of about 100 bytes are under
	// 30 MiB.
	perShard = 8 << 10
)

// Key is a caller at something that is limited.
type Key struct {
	What   string // such as a resource
	Client string
	Who    string // such as a person, or an address
}

// Rate is how fast a bucket fills, and what it holds.
type Rate struct {
	Every time.Duration // one call more
	Burst int64         // at the most
}

// Limiter holds the buckets of a process. It is safe for concurrent use.
type Limiter struct {
	seed   maphash.Seed
	base   time.Time
	shards [shards]shard
}

type shard struct {
	mu sync.Mutex
	// full has when each bucket is full again, since base (the theoretical
	// arrival time of the generic cell rate algorithm).
	full map[Key]time.Duration
	busy map[Key]int64
}

// New makes a limiter. Times are counted from now.
func New(now time.Time) *Limiter {
	l := &Limiter{seed: maphash.MakeSeed(), base: now}
	for i := range l.shards {
		l.shards[i].full, l.shards[i].busy = map[Key]time.Duration{}, map[Key]int64{}
	}
	return l
}

func (l *Limiter) shard(k Key) *shard {
	return &l.shards[maphash.Comparable(l.seed, k)%shards]
}

// Take counts a call. When the bucket is empty it counts nothing and returns
// how long the caller has to wait.
func (l *Limiter) Take(k Key, r Rate, now time.Time) (wait time.Duration, ok bool) {
	at := now.Sub(l.base)
	s := l.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	full, known := s.full[k]
	full = max(full, at)
	if over := full - at - time.Duration(r.Burst-1)*r.Every; over > 0 {
		return over, false
	}
	if !known && len(s.full) >= perShard {
		s.makeRoom(at)
	}
	s.full[k] = full + r.Every
	return 0, true
}

// makeRoom drops the buckets that are full, and others until an eighth is free:
// so the walk is paid for by the calls until the next.
func (s *shard) makeRoom(at time.Duration) {
	for k, full := range s.full {
		if full <= at {
			delete(s.full, k)
		}
	}
	for k := range s.full {
		if len(s.full) <= perShard-perShard/8 {
			return
		}
		delete(s.full, k)
	}
}

// Enter counts a call that begins, unless most are under way already; each is
// followed by one [Limiter.Leave].
func (l *Limiter) Enter(k Key, most int64) bool {
	s := l.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[k] >= most {
		return false
	}
	s.busy[k]++
	return true
}

// Leave counts a call that ends.
func (l *Limiter) Leave(k Key) {
	s := l.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[k]--; s.busy[k] <= 0 {
		delete(s.busy, k)
	}
}

// Len returns how many buckets are in memory.
func (l *Limiter) Len() (n int) {
	for i := range l.shards {
		l.shards[i].mu.Lock()
		n += len(l.shards[i].full)
		l.shards[i].mu.Unlock()
	}
	return n
}
