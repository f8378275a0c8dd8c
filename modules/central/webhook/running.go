package webhook

import "sync"

type hookKey struct{ tenant, id string }

// running counts the attempts of this process.
type running struct {
	mu   sync.Mutex
	all  int
	each map[hookKey]int
	wait sync.WaitGroup
}

// room returns how many attempts may start, and the webhooks that have enough.
func (r *running) room() (free int, tenants, hooks []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tenants, hooks = []string{}, []string{}
	for k, n := range r.each {
		if n >= perHook {
			tenants, hooks = append(tenants, k.tenant), append(hooks, k.id)
		}
	}
	return parallel - r.all, tenants, hooks
}

func (r *running) start(tenant, hook string, attempt func()) {
	k := hookKey{tenant, hook}
	r.mu.Lock()
	if r.each == nil {
		r.each = map[hookKey]int{}
	}
	r.all++
	r.each[k]++
	r.mu.Unlock()
	r.wait.Go(func() {
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.all--
			if r.each[k]--; r.each[k] == 0 {
				delete(r.each, k)
			}
		}()
		attempt()
	})
}
