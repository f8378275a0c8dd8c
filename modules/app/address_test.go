package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2/clientcredentials"

	"versola/modules/app"
	"versola/modules/app/apptest"
)

// callFrom sends a request over a connection from a loopback address.
func callFrom(t *testing.T, from string, r *http.Request) *http.Response {
	t.Helper()
	dial := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial.DialContext(ctx, network, address)
		}}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

func TestAudit_AddressIsTheCallersAndOnlyTrustedProxiesSayIt(t *testing.T) {
	const proxy, stranger = "127.0.0.1", "127.0.0.2"
	s := apptest.Start(t, func(cfg *app.Config) {
		cfg.Edge.TrustedProxies, cfg.Central.TrustedProxies = []string{proxy + "/32"}, []string{proxy + "/32"}
	})
	browser := signInAdmin(t, s)
	secret := operatorClient(t, s, browser, "ops", "use-api", "view-configuration", "manage-tenant")
	source := clientcredentials.Config{ClientID: "ops", ClientSecret: secret, TokenURL: systemIssuer(s) + "/token"}
	var token string
	apptest.Eventually(t, 5*time.Second, "the new client", func() bool {
		got, err := source.Token(t.Context())
		if err == nil {
			token = got.AccessToken
		}
		return err == nil
	})
	for i, c := range []struct{ name, base, from, said, want string }{
		{"a proxy that says it", s.Internal, proxy, "198.51.100.7", "198.51.100.7"},
		{"what the client wrote before the proxy", s.Internal, proxy, "203.0.113.1, 198.51.100.7", "198.51.100.7"},
		{"two proxies", s.Internal, proxy, "198.51.100.7, 127.0.0.1", "198.51.100.7"},
		{"a stranger that says it", s.Internal, stranger, "198.51.100.7", stranger},
		{"a stranger behind the proxy", s.Internal, proxy, "198.51.100.7, 127.0.0.2", stranger},
		{"rubbish", s.Internal, proxy, "<script>", proxy},
		{"nothing", s.Internal, proxy, "", proxy},
		{"through the edge", s.Edge + "/resources/central", proxy, "203.0.113.1, 198.51.100.7", "198.51.100.7"},
		{"through the edge, a stranger", s.Edge + "/resources/central", stranger, "198.51.100.7", stranger},
	} {
		id := fmt.Sprintf("address-%d", i)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+"/v1/tenants/demo/scopes", strings.NewReader(`{"id":"`+id+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}, "X-Forwarded-For": {c.said},
			"Forwarded": {"for=192.0.2.66"}, "X-Real-Ip": {"192.0.2.66"}}
		if resp := callFrom(t, c.from, r); resp.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %d", c.name, resp.StatusCode)
		}
		page := administer(t, s, browser, http.MethodGet, "/v1/audit?object_kind=scope&object_id="+id, "", "")
		var list struct {
			Items []struct {
				Address string `json:"address"`
			} `json:"items"`
		}
		if err := json.Unmarshal([]byte(page.Body), &list); err != nil || len(list.Items) != 1 || list.Items[0].Address != c.want {
			t.Errorf("%s: expected the address %s, got %d %s", c.name, c.want, page.Status, page.Body)
		}
	}
}
