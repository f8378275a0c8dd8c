package token

import (
	"encoding/json"
	"runtime"
	"testing"
	"weak"

	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/jose"
)

type fixture struct {
	signer   *jose.Signer
	holder   *catalog.Holder
	verifier *Verifier
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	key, err := jose.Generate(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner("k", jose.ES256, key)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{signer: signer, holder: catalog.NewHolder()}
	f.verifier = NewVerifier(f.holder, clock.System{})
	return f
}

// set makes a catalog current, with the signing key in it or without.
func (f *fixture) set(t *testing.T, withKey bool) {
	t.Helper()
	public, err := f.signer.Public().JWK()
	if err != nil {
		t.Fatal(err)
	}
	s := catalog.Snapshot{Issuer: "http://auth.test", RootTenant: "demo", Tenants: []catalog.TenantSpec{{ID: "demo"}}}
	if withKey {
		s.Keys = []catalog.KeySpec{{ID: "k", Alg: "ES256", State: catalog.KeyActive, Public: public}}
	}
	c, err := (&catalog.Compiler{}).Compile(&s)
	if err != nil {
		t.Fatal(err)
	}
	f.holder.Set(c)
}

func (f *fixture) token(t *testing.T) string {
	t.Helper()
	now := clock.System{}.Now().Unix()
	payload, err := json.Marshal(map[string]any{"iss": "http://auth.test", "sub": "s", "aud": "bank", "iat": now, "exp": now + 300, "jti": "j", "client_id": "c"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := f.signer.Sign(Type, payload)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestVerify_ANewCatalogIsAskedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.set(t, true)
	raw := f.token(t)
	for range 2 {
		if _, err := f.verifier.Verify(raw); err != nil {
			t.Fatal(err)
		}
	}
	f.set(t, false)
	if _, err := f.verifier.Verify(raw); err == nil {
		t.Error("a token passes whose key was withdrawn")
	}
	f.set(t, true)
	if _, err := f.verifier.Verify(raw); err != nil {
		t.Error(err)
	}
}

func TestVerify_RememberedTokensKeepNoOldCatalog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.set(t, true)
	old := weak.Make(f.holder.Current())
	if _, err := f.verifier.Verify(f.token(t)); err != nil {
		t.Fatal(err)
	}
	f.set(t, true)
	if _, err := f.verifier.Verify(f.token(t)); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if old.Value() != nil {
		t.Error("a catalog that was replaced is still in memory")
	}
	runtime.KeepAlive(f)
}
