package requestobject

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/dpop/dpoptest"
	"versola/platform/jose"
)

// held are keys of a client.
type held []jose.PublicKey

func (h held) Any(_ context.Context, _ *catalog.Client, passes func(jose.PublicKey) bool) (bool, error) {
	for _, k := range h {
		if passes(k) {
			return true, nil
		}
	}
	return false, nil
}

// FuzzRead signs any header and claims with the client's own key, and reads any
// text: whatever comes is refused by name, or is the client's and has only what
// was asked for.
func FuzzRead(f *testing.F) {
	key := dpoptest.NewKey(f, jose.ES256)
	public, err := jose.NewPublicKey("k", jose.ES256, key.Private.Public())
	if err != nil {
		f.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	t := &catalog.Tenant{TenantSpec: catalog.TenantSpec{ID: "demo"}, Issuer: "https://id.example"}
	cl := &catalog.Client{ClientSpec: catalog.ClientSpec{ID: "app", RequestObjectAlg: "ES256"}, Owner: t}
	reader := &Reader{Clock: clock.NewFake(now), Keys: held{public}}
	names := []string{"scope", "max_age", "claims", "state"}
	const claims = `{"iss":"app","client_id":"app","aud":"https://id.example","exp":1800000060,"scope":"openid"`
	for _, seed := range [][2]string{
		{`{"alg":"ES256"}`, claims + `}`}, {`{"alg":"ES256","typ":"oauth-authz-req+jwt"}`, claims + `,"max_age":1e400}`}, {`{"alg":"ES256"}`, claims + `,"claims":{"a":[1,"\u2028"]}}`},
		{`{"alg":"none"}`, claims + `}`}, {`{"alg":"ES256"}`, claims + `,"state":"\ud800"}`}, {"a.b.c", ""}, {"", ""}, {`{"alg":"ES256"}`, claims + `,"scope":1}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(test *testing.T, header, payload string) {
		raw, signing := header, *key
		signing.TB = test
		if payload != "" {
			raw = signing.Sign(header, payload)
		}
		p, err := reader.Read(context.Background(), tenant.At{Tenant: t}, cl, raw, names)
		if err != nil {
			e, ok := oauth.AsError(err)
			if !ok || e.HTTPStatus() != http.StatusBadRequest || e.Code != oauth.InvalidRequestObject || strings.ContainsFunc(e.Description, func(c rune) bool { return c < 0x20 || c > 0x7e || c == '"' }) {
				test.Errorf("%q %q: %v", header, payload, err)
			}
			return
		}
		if !strings.Contains(payload, "app") || p.Sent("iss") || p.Sent("client_id") || p.Sent("exp") {
			test.Errorf("%q %q was read as %+v", header, payload, p)
		}
	})
}
