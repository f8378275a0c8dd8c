package dpop_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"versola/platform/dpop"
	"versola/platform/dpop/dpoptest"
	"versola/platform/jose"
)

// memory remembers in a map.
type memory struct {
	seen map[string]time.Time
	err  error
}

func (m *memory) Claim(_ context.Context, scope, id string, expires time.Time) (bool, error) {
	if m.err != nil {
		return false, m.err
	}
	_, known := m.seen[scope+id]
	m.seen[scope+id] = expires
	return !known, nil
}

func newMemory() *memory { return &memory{seen: map[string]time.Time{}} }

func TestProve_TheTokenDecidesWhatIsAskedFor(t *testing.T) {
	k, other := dpoptest.NewKey(t, jose.ES256), dpoptest.NewKey(t, jose.ES256)
	const token = "token"
	right := func(k *dpoptest.Key) string {
		return k.Proof(http.MethodPost, endpoint, now, dpoptest.Token(token))
	}
	key, certificate := jose.Confirmation{JKT: k.Thumbprint}, jose.Confirmation{X5T: "c"}
	both := jose.Confirmation{JKT: k.Thumbprint, X5T: "c"}
	for name, x := range map[string]struct {
		scheme      string
		bound       jose.Confirmation
		certificate string
		proofs      []string
		want        error
	}{
		"plain":                             {scheme: "Bearer"},
		"plain, a proof beside":             {scheme: "Bearer", proofs: []string{"garbage"}},
		"plain, a certificate beside":       {scheme: "Bearer", certificate: "c"},
		"plain as bound":                    {scheme: "DPoP", proofs: []string{right(k)}, want: dpop.NotBound},
		"bound":                             {scheme: "DPoP", bound: key, proofs: []string{right(k)}},
		"bound, scheme in lower case":       {scheme: "dpop", bound: key, proofs: []string{right(k)}},
		"bound as bearer":                   {scheme: "Bearer", bound: key, proofs: []string{right(k)}, want: dpop.NeedsProof},
		"bound, no proof":                   {scheme: "DPoP", bound: key, want: dpop.Missing},
		"bound, two proofs":                 {scheme: "DPoP", bound: key, proofs: []string{right(k), right(k)}, want: dpop.Several},
		"bound to another key":              {scheme: "DPoP", bound: key, proofs: []string{right(other)}, want: dpop.OtherKey},
		"to a certificate":                  {scheme: "Bearer", bound: certificate, certificate: "c"},
		"to a certificate, none":            {scheme: "Bearer", bound: certificate, want: dpop.NoCertificate},
		"to another certificate":            {scheme: "Bearer", bound: certificate, certificate: "d", want: dpop.OtherCertificate},
		"to a certificate, as bound":        {scheme: "DPoP", bound: certificate, certificate: "c", proofs: []string{right(k)}, want: dpop.NotBound},
		"to both":                           {scheme: "DPoP", bound: both, certificate: "c", proofs: []string{right(k)}},
		"to both, without the certificate":  {scheme: "DPoP", bound: both, proofs: []string{right(k)}, want: dpop.NoCertificate},
		"to both, without the proof":        {scheme: "DPoP", bound: both, certificate: "c", want: dpop.Missing},
		"to both, as bearer":                {scheme: "Bearer", bound: both, certificate: "c", want: dpop.NeedsProof},
		"bound, a scheme that is not known": {scheme: "", bound: key, proofs: []string{right(k)}, want: dpop.NeedsProof},
	} {
		h := http.Header{}
		for _, p := range x.proofs {
			h.Add(dpop.Header, p)
		}
		r := request()
		r.AccessToken = token
		err := dpop.Guard{Replay: newMemory()}.Prove(t.Context(), h, dpop.Presentation{Scheme: x.scheme, Bound: x.bound, Certificate: x.certificate, Request: r})
		if !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
}

func TestGuard_UsesAProofUpWhenAllElseIsRight(t *testing.T) {
	k, m := dpoptest.NewKey(t, jose.ES256), newMemory()
	g, h := dpop.Guard{Replay: m}, http.Header{}
	h.Set(dpop.Header, k.Proof(http.MethodPost, endpoint, now, nil))
	wrong := request()
	wrong.Method = http.MethodGet
	if _, err := g.Once(t.Context(), h, wrong); !errors.Is(err, dpop.Method) || len(m.seen) != 0 {
		t.Errorf("a wrong proof: %v, %d remembered", err, len(m.seen))
	}
	if _, err := g.Once(t.Context(), h, request()); err != nil {
		t.Errorf("the first use: %v", err)
	}
	if _, err := g.Once(t.Context(), h, request()); !errors.Is(err, dpop.Replayed) {
		t.Errorf("the second: %v", err)
	}
	for _, expires := range m.seen {
		if !expires.Equal(now.Add(dpop.MaxAge)) {
			t.Errorf("remembered until %s", expires)
		}
	}
	away := errors.New("away")
	for name, g := range map[string]dpop.Guard{"away": {Replay: &memory{err: away}}, "none": {}} {
		if _, err := g.Once(t.Context(), h, request()); err == nil || errors.As(err, new(dpop.Refusal)) {
			t.Errorf("memory %s: %v", name, err)
		}
	}
}
