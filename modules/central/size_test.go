package central

import (
	"fmt"
	"runtime"
	"testing"

	"versola/db"
	"versola/modules/central/catalog"
	"versola/modules/central/scaletest"
	"versola/modules/central/store"
	"versola/platform/pgtest"
)

func BenchmarkCatalog_AtScale(b *testing.B) {
	url := pgtest.New(b, db.Auth(), db.Central())
	p := newProcess(b, url, url, b.TempDir(), encryption)
	scaletest.Fill(b, p.db, encryption, scaletest.EdgeKeys(b))
	var s *catalog.Snapshot
	var err error
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if s, err = store.Load(b.Context(), p.db); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read one change", func(b *testing.B) {
		state, err := store.LoadState(b.Context(), p.db, nil)
		if err != nil {
			b.Fatal(err)
		}
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			scaletest.Rename(b, p.db, fmt.Sprintf("Name %d", n))
			b.StartTimer()
			before := state.Mark
			if state, err = store.LoadState(b.Context(), p.db, state); err != nil {
				b.Fatal(err)
			}
			if _, known := state.Since(before); !known {
				b.Fatal("read whole")
			}
		}
	})
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.compiler.Compile(s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compile one change", func(b *testing.B) {
		c, err := p.compiler.Compile(s)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if c, err = p.compiler.Advance(c, s, []catalog.Ref{scaletest.Client}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("copy on disk", func(b *testing.B) {
		for b.Loop() {
			if err := p.copy.Write(s); err != nil {
				b.Fatal(err)
			}
		}
	})
	s = nil
	b.Run("memory", func(b *testing.B) {
		before := heap()
		for b.Loop() {
			if err := p.Load(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		runtime.KeepAlive(p)
	})
	b.Run("a change is live", func(b *testing.B) {
		p.run(b)
		p.await(b, 10*live, func(*catalog.Catalog) bool { return true })
		for n := 0; b.Loop(); n++ {
			name := fmt.Sprintf("Other name %d", n)
			scaletest.Rename(b, p.db, name)
			p.await(b, 10*live, func(c *catalog.Catalog) bool { return scaletest.Named(c, name) })
		}
	})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
