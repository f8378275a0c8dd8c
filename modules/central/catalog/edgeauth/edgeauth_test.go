package edgeauth

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"versola/modules/central/catalog"
	"versola/platform/httpserver"
	"versola/platform/jose"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newSigner(t *testing.T) *jose.Signer {
	t.Helper()
	key, err := jose.Generate(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	s, err := jose.NewSigner("", jose.ES256, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func jwks(t *testing.T, signers ...*jose.Signer) json.RawMessage {
	t.Helper()
	set := struct {
		Keys []json.RawMessage `json:"keys"`
	}{}
	for _, s := range signers {
		raw, err := s.Public().JWK()
		if err != nil {
			t.Fatal(err)
		}
		set.Keys = append(set.Keys, raw)
	}
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func compile(t *testing.T, edges ...catalog.EdgeSpec) *catalog.Catalog {
	t.Helper()
	c, err := (&catalog.Compiler{}).Compile(&catalog.Snapshot{Issuer: "http://localhost:8080", Edges: edges})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func request(authorization ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/internal/catalog", nil)
	for _, a := range authorization {
		r.Header.Add("Authorization", a)
	}
	return r
}

func TestVerify_AcceptsAnEdgesOwnTokenDuringKeyRotation(t *testing.T) {
	t.Parallel()
	old, next := newSigner(t), newSigner(t)
	cat := compile(t, catalog.EdgeSpec{ID: "local", JWKS: jwks(t, old, next)})
	for _, s := range []*jose.Signer{old, next} {
		token, err := Sign(s, "local", now, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Verify(cat, request("Bearer "+token), now.Add(5*time.Second))
		if err != nil || got != "local" {
			t.Errorf("Verify = %q, %v", got, err)
		}
	}
}

func TestVerify_RefusesEverythingElse(t *testing.T) {
	t.Parallel()
	mine, other := newSigner(t), newSigner(t)
	cat := compile(t,
		catalog.EdgeSpec{ID: "local", JWKS: jwks(t, mine)},
		catalog.EdgeSpec{ID: "other", JWKS: jwks(t, other)},
	)
	good := map[string]any{"iss": "local", "sub": "local", "aud": Audience, "iat": now.Unix(), "exp": now.Unix() + 60, "jti": "a"}
	sign := func(s *jose.Signer, typ string, change map[string]any) string {
		c := map[string]any{}
		for k, v := range good {
			c[k] = v
		}
		for k, v := range change {
			if v == nil {
				delete(c, k)
			} else {
				c[k] = v
			}
		}
		payload, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		token, err := s.Sign(typ, payload)
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + token
	}
	valid := sign(mine, Type, nil)
	if _, err := Verify(cat, request(valid), now); err != nil {
		t.Fatalf("the base of the cases is refused: %v", err)
	}
	for name, headers := range map[string][]string{
		"no header":              {},
		"two headers":            {valid, valid},
		"another scheme":         {"DPoP " + valid[len("Bearer "):]},
		"not a token":            {"Bearer x"},
		"token of another type":  {sign(mine, "at+jwt", nil)},
		"token without a type":   {sign(mine, "", nil)},
		"signed by another edge": {sign(other, Type, nil)},
		"unknown edge":           {sign(mine, Type, map[string]any{"iss": "nobody", "sub": "nobody"})},
		"sub of another edge":    {sign(mine, Type, map[string]any{"sub": "other"})},
		"another audience":       {sign(mine, Type, map[string]any{"aud": "central"})},
		"audience as a list":     {sign(mine, Type, map[string]any{"aud": []string{Audience, "x"}})},
		"no jti":                 {sign(mine, Type, map[string]any{"jti": nil})},
		"empty jti":              {sign(mine, Type, map[string]any{"jti": ""})},
		"no exp":                 {sign(mine, Type, map[string]any{"exp": nil})},
		"lives too long":         {sign(mine, Type, map[string]any{"exp": now.Unix() + 61})},
		"expired":                {sign(mine, Type, map[string]any{"iat": now.Unix() - 91, "exp": now.Unix() - 31})},
		"from the future":        {sign(mine, Type, map[string]any{"iat": now.Unix() + 31, "exp": now.Unix() + 60})},
		"exp before iat":         {sign(mine, Type, map[string]any{"iat": now.Unix(), "exp": now.Unix() - 1})},
		"exp overflows":          {sign(mine, Type, map[string]any{"iat": -1 << 62, "exp": now.Unix() + 60})},
		"difference overflows":   {sign(mine, Type, map[string]any{"iat": math.MinInt64, "exp": now.Unix() + 1e9})},
		"exp is text":            {sign(mine, Type, map[string]any{"exp": "tomorrow"})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Verify(cat, request(headers...), now)
			var p *httpserver.Problem
			if got != "" || !errors.Is(err, ErrRefused) || !errors.As(err, &p) || p.Status != http.StatusUnauthorized {
				t.Errorf("Verify = %q, %v; want a 401", got, err)
			}
		})
	}
}

func TestVerify_BeforeTheFirstCatalogSaysTryLater(t *testing.T) {
	t.Parallel()
	_, err := Verify(nil, request(), now)
	var p *httpserver.Problem
	if !errors.As(err, &p) || p.Status != http.StatusServiceUnavailable {
		t.Errorf("Verify = %v; want a 503", err)
	}
}
