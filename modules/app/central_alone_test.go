package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"versola/modules/app"
	"versola/modules/app/apptest"
)

// systemIssuer is the issuer of the administrators' tenant.
func systemIssuer(s *apptest.System) string { return s.Issuer + "/t/system" }

// operatorClient creates a service client that may do what permissions allow,
// as an operator would, and returns its secret.
func operatorClient(t *testing.T, s *apptest.System, admin *apptest.Browser, id string, permissions ...string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"id": id, "client_kind": "service", "auth_method": "client_secret_basic",
		"grant_types": []string{"client_credentials"}, "permissions": permissions, "audiences": []string{"central"}})
	if err != nil {
		t.Fatal(err)
	}
	page := administer(t, s, admin, http.MethodPost, "/v1/tenants/system/clients", "application/json", string(body))
	var created struct {
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(page.Body), &created); err != nil || page.Status != http.StatusCreated || created.Secret == "" {
		t.Fatalf("create a service client: %d %s", page.Status, page.Body)
	}
	return created.Secret
}

// status calls a URL with a bearer token.
func status(t *testing.T, token, address string) int {
	t.Helper()
	r := mustGet(t, address)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func TestRoles_CentralAloneHearsOfRevokedTokens(t *testing.T) {
	s := apptest.Start(t, nil)
	secret := operatorClient(t, s, signInAdmin(t, s), "ops", "view-configuration", "use-api")

	cfg, ports := *s.Config, apptest.FreePorts(t, 2)
	cfg.Role, cfg.Demo.Enabled = "central", false
	cfg.Central.Listen, cfg.Diagnostics.Central = fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	alone := "http://" + cfg.Central.Listen
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- app.Serve(ctx, app.ServeOptions{Config: &cfg, Version: "test", Out: io.Discard, LogTo: io.Discard, Clock: s.Clock})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve central: %v", err)
		}
	})
	apptest.WaitReady(t, "http://"+cfg.Diagnostics.Central)

	cc := clientcredentials.Config{ClientID: "ops", ClientSecret: secret, TokenURL: systemIssuer(s) + "/token"}
	var token *oauth2.Token
	apptest.Eventually(t, 5*time.Second, "the new client at the token endpoint", func() (ok bool) {
		var err error
		token, err = cc.Token(t.Context())
		return err == nil
	})
	for _, central := range []string{s.Internal, alone} {
		apptest.Eventually(t, 5*time.Second, "the new client at "+central, func() bool {
			return status(t, token.AccessToken, central+"/v1/tenants") == http.StatusOK
		})
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, systemIssuer(s)+"/revoke", strings.NewReader(url.Values{"token": {token.AccessToken}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth("ops", secret)
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("revoke: %d", resp.StatusCode)
	}
	for _, central := range []string{s.Internal, alone} {
		apptest.Eventually(t, time.Second, "the revocation at "+central, func() bool {
			return status(t, token.AccessToken, central+"/v1/tenants") == http.StatusUnauthorized
		})
	}
	fresh, err := cc.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := status(t, fresh.AccessToken, alone+"/v1/tenants"); got != http.StatusOK {
		t.Errorf("another token of the client: %d", got)
	}
}
