package session

import (
	"crypto/rand"
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"versola/modules/central/catalog"
	"versola/modules/edge/lru"
	"versola/modules/edge/provider"
	"versola/modules/edge/token"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/jose"
	"versola/platform/secret"
)

// What a cached session of a person with several roles costs, all included.
func TestCache_SessionUnderOneKiB(t *testing.T) {
	const n, budget = 4000, 1024
	c := clock.System{}
	key, err := jose.Generate(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner("k", jose.ES256, key)
	if err != nil {
		t.Fatal(err)
	}
	public, _ := signer.Public().JWK()
	compiled, err := (&catalog.Compiler{}).Compile(&catalog.Snapshot{Issuer: "http://localhost:8080", RootTenant: "demo", Tenants: []catalog.TenantSpec{{ID: "demo"}},
		Keys: []catalog.KeySpec{{ID: "k", Alg: "ES256", State: catalog.KeyActive, Public: public}}})
	if err != nil {
		t.Fatal(err)
	}
	holder := catalog.NewHolder()
	holder.Set(compiled)
	s := &Sessions{d: Deps{Catalog: holder, Clock: c, Verifier: token.NewVerifier(holder, c)}, cache: lru.New[*Session](4 * n)}
	uuid := func() string { return id.NewUUID(c.Now(), rand.Reader).String() }
	before := heap()
	for range n {
		sub, sid, now := uuid(), uuid(), c.Now()
		payload, _ := json.Marshal(map[string]any{"iss": "http://localhost:8080", "sub": sub, "aud": []string{"bank", "cards"}, "iat": now.Unix(),
			"exp": now.Unix() + 300, "jti": id.Short(rand.Reader, 16), "client_id": "demo-web", "scope": "openid profile email phone bank",
			"sid": sid, "gid": uuid(), "tenant": "demo", "roles": []string{"customer", "reader", "auditor"}})
		access, err := signer.Sign(token.Type, payload)
		if err != nil {
			t.Fatal(err)
		}
		hash, _ := Hash(id.NewHandle(rand.Reader))
		e := s.entry(row{hash: hash, tenant: string([]byte("demo")), preset: string([]byte("demo")), subject: sub, sid: string([]byte(sid)),
			tokens: provider.Tokens{Access: secret.Text(access)}, accessEnd: now.Add(5 * time.Minute), version: 1, expires: now.Add(12 * time.Hour)})
		if e.Claims == nil {
			t.Fatal("the token does not verify")
		}
		s.put(e, 0)
	}
	per := (heap() - before) / n
	t.Logf("%d bytes a session", per)
	if per > budget {
		t.Errorf("%d bytes a session, the budget is %d", per, budget)
	}
	runtime.KeepAlive(s)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
