package tenant

import (
	"sync/atomic"

	"versola/modules/central/catalog"
)

// Derived is a value that follows from the catalog and costs something to
// compute: it is computed once per catalog, by the first request that needs
// it. It is safe for concurrent use.
type Derived[T any] struct {
	compute func(*catalog.Catalog) T
	last    atomic.Pointer[derivedValue[T]]
}

type derivedValue[T any] struct {
	from  *catalog.Catalog
	value T
}

// NewDerived makes a derived value; compute must not change its result after.
func NewDerived[T any](compute func(*catalog.Catalog) T) *Derived[T] {
	return &Derived[T]{compute: compute}
}

// Of returns the value that follows from c.
func (d *Derived[T]) Of(c *catalog.Catalog) T {
	if last := d.last.Load(); last != nil && last.from == c {
		return last.value
	}
	v := d.compute(c)
	d.last.Store(&derivedValue[T]{c, v})
	return v
}
