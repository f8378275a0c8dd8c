package edge_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"versola/modules/central/catalog"
	"versola/platform/clock"
)

func TestUpstreamTLS_CertificateIsCheckedAgainstTheResourcesOwnAuthorities(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	up := httptest.NewUnstartedServer(w.upstream)
	up.EnableHTTP2 = true
	up.StartTLS()
	t.Cleanup(up.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw}))
	other := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: selfSigned(t)}))
	e, token := w.edge(), w.auth.bearer(nil)
	w.snapshot.Resources[0].Upstream.URL = up.URL
	for name, c := range map[string]struct {
		tls    *catalog.UpstreamTLS
		reason string
	}{
		"its authority":                {&catalog.UpstreamTLS{CA: ca}, ""},
		"its authority and name":       {&catalog.UpstreamTLS{CA: ca, ServerName: "example.com"}, ""},
		"its authority, another name":  {&catalog.UpstreamTLS{CA: ca, ServerName: "bank.test"}, "upstream_failed"},
		"another authority":            {&catalog.UpstreamTLS{CA: other}, "upstream_failed"},
		"the system's authorities":     {nil, "upstream_failed"},
		"the system's, under its name": {&catalog.UpstreamTLS{ServerName: "example.com"}, "upstream_failed"},
	} {
		w.snapshot.Resources[0].Upstream.TLS = c.tls
		w.compile()
		// Twice: a connection that another setting opened must not serve.
		for range 2 {
			res := newBrowser(t).get(e.URL+accounts, "Authorization", "Bearer "+token)
			if res.reason() != c.reason || (res.StatusCode == http.StatusOK) != (c.reason == "") {
				t.Errorf("%s: %d %s", name, res.StatusCode, res.body)
			}
		}
	}
}

// selfSigned makes a certificate that is its own authority.
func selfSigned(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	now := clock.System{}.Now()
	spec := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, spec, spec, key.Public(), key)
	must(t, err)
	return der
}
