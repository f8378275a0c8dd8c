package admin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/scaletest"
	"versola/platform/clock"
)

// BenchmarkList_TenThousandClients reports the 95th percentile of lists and
// searches through the API, among a thousand tenants with ten thousand clients
// and a tenant that has another ten thousand alone.
func BenchmarkList_TenThousandClients(b *testing.B) {
	f := newFixture(b)
	scaletest.Fill(b, f.db, encryption, edgeKeys(b))
	ops := []change.Op{change.Put{Spec: &catalog.TenantSpec{ID: "large", Name: "Large", Profile: catalog.ProfileStandard, Directory: "large"}}}
	for n := range 10_000 {
		ops = append(ops, change.Put{Spec: &catalog.ClientSpec{Tenant: "large", ID: fmt.Sprintf("app-%05d", n), Name: catalog.Plain(fmt.Sprintf("Application %d", n)),
			Kind: catalog.KindNative, AuthMethod: catalog.AuthNone, GrantTypes: []string{catalog.GrantCode}, RedirectURIs: []string{"https://app.example/complete"}}})
	}
	_, err := f.engine.Do(b.Context(), change.System("test"), ops, change.Options{})
	must(b, err)
	f.sync(b)
	admin := f.as(b, "admin")
	for name, path := range map[string]string{
		"tenants":                       "/v1/tenants",
		"tenants, search":               "/v1/tenants?q=0999",
		"tenants, a deep page":          "/v1/tenants?after=dGVuYW50LTA1MDA", // tenant-0500
		"clients":                       "/v1/tenants/tenant-0500/clients",
		"clients of a large tenant":     "/v1/tenants/large/clients",
		"clients, the largest page":     "/v1/tenants/large/clients?limit=500",
		"clients, search":               "/v1/tenants/large/clients?q=application%20999",
		"clients, search without a hit": "/v1/tenants/large/clients?q=nothing",
		"clients, filter":               "/v1/tenants/large/clients?client_kind=service",
		"one client":                    "/v1/tenants/large/clients/app-05000",
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.Header.Set("Authorization", admin)
				w := httptest.NewRecorder()
				start := clock.Monotonic()
				f.handler.ServeHTTP(w, r)
				took = append(took, clock.Since(start))
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}
