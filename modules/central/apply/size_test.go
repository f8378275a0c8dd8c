package apply

import (
	"fmt"
	"strings"
	"testing"

	"versola/modules/central/catalog"
	"versola/modules/central/store"
)

// BenchmarkReload_ThousandTenantsTenThousandClients is what a process pays at
// its start and for every change in a large deployment.
func BenchmarkReload_ThousandTenantsTenThousandClients(b *testing.B) {
	f := newFixture(b)
	var docs strings.Builder
	for t := range 1000 {
		fmt.Fprintf(&docs, "---\nkind: tenant\nid: t%d\nsecurity_profile: standard\n---\nkind: scope\ntenant: t%d\nid: openid\n", t, t)
		for c := range 10 {
			fmt.Fprintf(&docs, "---\nkind: client\ntenant: t%d\nid: c%d\nclient_kind: web\nauth_method: client_secret_basic\nsecret: a-secret-of-a-client\n"+
				"grant_types: [authorization_code]\nredirect_uris: [\"https://a.example/cb\"]\nscopes: [openid]\n", t, c)
		}
	}
	if _, err := f.Apply(b.Context(), parse(b, docs.String(), nil), Options{}); err != nil {
		b.Fatal(err)
	}
	compiler := &catalog.Compiler{Open: f.keyring.Open}
	for b.Loop() {
		s, err := store.Load(b.Context(), f.DB)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := compiler.Compile(s); err != nil {
			b.Fatal(err)
		}
	}
}
