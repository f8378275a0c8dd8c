package keys

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/httpserver"
	"versola/platform/jose"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// Algorithms are those that a deployment has a key for from its first start:
// all that a client may register.
func Algorithms() []jose.Algorithm { return jose.Algorithms() }

const activeSQL = `SELECT alg FROM central.signing_key WHERE state = '` + catalog.KeyActive + `'`

const insertSQL = `
INSERT INTO central.signing_key (id, alg, state, public_jwk, sealed, created_at, updated_at)
VALUES ($1, $2, '` + catalog.KeyActive + `', $3, $4, $5, $5)
ON CONFLICT (alg) WHERE state = '` + catalog.KeyActive + `' DO NOTHING`

// Ensure makes the active keys that are missing, all in one transaction, so that
// no process sees half of them. keyring is the one that opens the catalog's
// secrets.
func Ensure(ctx context.Context, db *postgres.DB, keyring *secret.Keyring, now time.Time) error {
	rows, err := db.Query(ctx, activeSQL)
	if err != nil {
		return fmt.Errorf("look for signing keys: %w", err)
	}
	active, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for signing keys: %w", err)
	}
	batch := &pgx.Batch{} // runs as one transaction
	for _, alg := range Algorithms() {
		if slices.Contains(active, string(alg)) {
			continue
		}
		if err := create(batch, keyring, alg, now); err != nil {
			return fmt.Errorf("create %s signing key: %w", alg, err)
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := db.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("store signing keys: %w", err)
	}
	return nil
}

func create(batch *pgx.Batch, keyring *secret.Keyring, alg jose.Algorithm, now time.Time) error {
	private, err := jose.Generate(alg)
	if err != nil {
		return err
	}
	public, err := jose.NewPublicKey("", alg, private.Public())
	if err != nil {
		return err
	}
	jwk, err := public.JWK()
	if err != nil {
		return err
	}
	der, err := jose.MarshalPrivate(private)
	if err != nil {
		return err
	}
	sealed := keyring.Seal(der, catalog.SigningKeyContext(public.ID))
	batch.Queue(insertSQL, public.ID, string(alg), jwk, sealed, now)
	return nil
}

// maxAge is how long the key set may be kept. A key is published for longer
// than this before it signs.
const maxAge = "public, max-age=300"

// Endpoint serves the key set.
type Endpoint struct{ document *tenant.Derived[[]byte] }

// NewEndpoint makes the endpoint.
func NewEndpoint() *Endpoint {
	return &Endpoint{tenant.NewDerived(document)}
}

// Handle answers GET /.well-known/jwks.json.
func (e *Endpoint) Handle(c echo.Context) error {
	body := e.document.Of(tenant.Of(c).Catalog)
	if body == nil {
		// Before the first keys exist; an empty set would be kept by caches.
		return &httpserver.Problem{Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
			Detail: "there is no signing key yet", Reason: "no_keys"}
	}
	c.Response().Header().Set("Cache-Control", maxAge)
	return c.Blob(http.StatusOK, "application/jwk-set+json", body)
}

func document(c *catalog.Catalog) []byte {
	set := struct {
		Keys []json.RawMessage `json:"keys"`
	}{[]json.RawMessage{}}
	for _, k := range c.Keys().Keys() {
		jwk, err := k.JWK()
		if err != nil {
			return nil
		}
		set.Keys = append(set.Keys, jwk)
	}
	if len(set.Keys) == 0 {
		return nil
	}
	body, err := json.Marshal(set)
	if err != nil {
		return nil
	}
	return body
}
