package export_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"versola/db"
	"versola/modules/auth/user"
	"versola/modules/central/apply"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/export"
	"versola/modules/central/store"
	"versola/modules/central/validate"
	"versola/platform/clock"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// keyOf gives each deployment an encryption key of its own.
func keyOf(b byte) []secret.Key {
	return []secret.Key{{ID: "k", Value: bytes.Repeat([]byte{b}, 32)}}
}

func opener(t *testing.T, keys []secret.Key) catalog.Opener {
	t.Helper()
	keyring, err := secret.NewKeyring(keys, catalog.SealPurpose)
	if err != nil {
		t.Fatal(err)
	}
	return keyring.Open
}

func applied(t *testing.T, dbx *postgres.DB, keys []secret.Key, text string) []apply.Change {
	t.Helper()
	c := clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	engine, err := change.New(change.Deps{DB: dbx, Encryption: keys, Clock: c, Random: rand.Reader, Rules: validate.Rules{Development: true}})
	if err != nil {
		t.Fatal(err)
	}
	docs := &apply.Documents{}
	if err := docs.Add("export.yaml", strings.NewReader(text), nil); err != nil {
		t.Fatal(err)
	}
	a := apply.New(apply.Deps{DB: dbx, Engine: engine, Users: user.NewStore(dbx, rand.Reader), Clock: c, Random: rand.Reader})
	changes, err := a.Apply(t.Context(), docs, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func exported(t *testing.T, dbx *postgres.DB, o export.Options) (string, *catalog.Snapshot) {
	t.Helper()
	s, err := store.Load(t.Context(), dbx)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := export.Write(&b, s, o); err != nil {
		t.Fatal(err)
	}
	return b.String(), s
}

// everything has two tenants with equal ids, and texts that YAML, JSON and
// variables could read otherwise.
const everything = `
kind: edge
id: local
jwks: {keys: [{kty: EC, use: sig, alg: ES256, kid: s, crv: P-256, x: f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU, y: x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0}, {kty: EC, use: enc, kid: e, crv: P-256, x: f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU, y: x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0}]}
---
kind: directory
id: people
name: {en: People, ru: Люди, pt-BR: Pessoas}
---
kind: tenant
id: one
name: "yes"
security_profile: standard
directory: people
edge: local
settings: {access_token_ttl: 90s, refresh_absolute_ttl: 1000h, phone_prefixes: ["+7"], offline_survives_logout: true}
---
kind: tenant
id: two
name: "$${NOT_A_VARIABLE} # no comment: 'quoted' \"twice\""
security_profile: standard
---
{kind: scope, tenant: one, id: openid}
---
{kind: scope, tenant: two, id: openid, description: {de: Anmelden, en: Sign in}, claims: [name]}
---
{kind: claim, tenant: one, id: "https://a.example/claim", name: "0123"}
---
kind: client
tenant: one
id: web
name: {en: Web, ru: Сайт}
client_kind: web
auth_method: client_secret_basic
secrets: ["new ${SECRET-12345", "  old secret 1  "]
grant_types: [authorization_code, refresh_token]
redirect_uris: ["https://a.example/cb?x=%20"]
post_logout_redirect_uris: ["https://a.example/"]
scopes: [openid]
require_pkce: false
---
{kind: client, tenant: two, id: web, client_kind: native, auth_method: none, grant_types: [authorization_code], redirect_uris: ["com.example:/cb"], scopes: [openid]}
---
kind: resource
tenant: one
id: api
upstream: {url: "http://127.0.0.1:1/base", max_body: 1048576, forward_token: true}
endpoints: [{id: list, method: GET, path: /}, {id: rest, method: GET, path: "/{rest...}", public: true}]
---
{kind: permission, tenant: one, id: read, endpoints: ["api:list"]}
---
{kind: role, tenant: one, id: reader, permissions: [read]}
---
{kind: preset, tenant: one, id: login, edge: local, client: web, redirect_uri: "https://a.example/cb?x=%20", scopes: [openid], after_login: /, after_logout: /}
`

func TestExport_AppliedToAnEmptyDatabaseGivesTheSameCatalogByteForByte(t *testing.T) {
	t.Parallel()
	first, second := pgtest.Open(t, db.Auth(), db.Central()), pgtest.Open(t, db.Auth(), db.Central())
	// A "${" in a secret can only be written as a variable's value or doubled.
	applied(t, first, keyOf(1), strings.ReplaceAll(everything, "new ${", "new $${"))
	was, before := exported(t, first, export.Options{Open: opener(t, keyOf(1))})
	applied(t, second, keyOf(2), was)
	is, after := exported(t, second, export.Options{Open: opener(t, keyOf(2))})
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("the second export differs:\n%s", diff)
	}
	if diff := cmp.Diff(plain(t, before, keyOf(1)), plain(t, after, keyOf(2))); diff != "" {
		t.Errorf("the catalog differs:\n%s", diff)
	}
	for _, c := range applied(t, first, keyOf(1), was) {
		if c.Action != change.Unchanged {
			t.Errorf("applied where it comes from: %s", c)
		}
	}
}

// plain is the catalog's JSON with secrets opened and without the revision.
func plain(t *testing.T, s *catalog.Snapshot, keys []secret.Key) string {
	t.Helper()
	open := opener(t, keys)
	c := *s
	c.Revision = 0
	c.Clients = append([]catalog.ClientSpec(nil), s.Clients...)
	for i := range c.Clients {
		cl := &c.Clients[i]
		cl.Secrets = nil
		for _, sealed := range s.Clients[i].Secrets {
			text, err := open(sealed.Sealed, catalog.ClientSecretContext(cl.Tenant, cl.ID, sealed.ID))
			if err != nil {
				t.Fatal(err)
			}
			cl.Secrets = append(cl.Secrets, catalog.SealedSecret{Sealed: text})
		}
	}
	raw, err := json.MarshalIndent(&c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestExport_WithoutSecretsShowsNoneAndKeepsThoseThatAreThere(t *testing.T) {
	t.Parallel()
	first, second := pgtest.Open(t, db.Auth(), db.Central()), pgtest.Open(t, db.Auth(), db.Central())
	applied(t, first, keyOf(1), strings.ReplaceAll(everything, "new ${", "new $${"))
	was, _ := exported(t, first, export.Options{})
	if strings.Contains(was, "SECRET-12345") || strings.Contains(was, "old secret 1") || strings.Contains(was, "sealed") {
		t.Errorf("a secret is exported:\n%s", was)
	}
	for _, c := range applied(t, first, keyOf(1), was) {
		if c.Action != change.Unchanged {
			t.Errorf("applied where it comes from: %s", c)
		}
	}
	applied(t, second, keyOf(2), was)
	is, s := exported(t, second, export.Options{})
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("the second export differs:\n%s", diff)
	}
	if n := len(s.Clients[0].Secrets); n != 1 {
		t.Errorf("the client has %d secrets, want a generated one", n)
	}
}

func TestExport_OfOneTenantHasOnlyWhatBelongsToIt(t *testing.T) {
	t.Parallel()
	dbx := pgtest.Open(t, db.Auth(), db.Central())
	applied(t, dbx, keyOf(1), strings.ReplaceAll(everything, "new ${", "new $${"))
	got, _ := exported(t, dbx, export.Options{Tenant: "two"})
	if n := strings.Count(got, "kind: "); n != 4 { // the tenant, its scope, its client and the client's kind
		t.Errorf("%d kinds in\n%s", n, got)
	}
	if strings.Contains(got, "tenant: one") {
		t.Errorf("another tenant is in\n%s", got)
	}
}
