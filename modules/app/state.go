package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/platform/id"
	"versola/platform/secret"
)

// secretsFile, in the state directory, holds what a development process
// generated for itself, so that a restart finds its own data readable.
const secretsFile = "secrets.json"

// generated are secrets that were made because none was configured.
type generated struct {
	Encryption    string          `json:"encryption_key"`
	Tokens        string          `json:"token_key"`
	Pepper        string          `json:"pepper"`
	SessionKey    string          `json:"edge_session_key"`
	EdgeKeys      json.RawMessage `json:"edge_private_keys"`
	AdminPassword string          `json:"admin_one_time_password"`
}

// fillSecrets completes cfg with secrets from the state directory, which are
// generated the first time. It is for development; production is configured.
func fillSecrets(cfg *Config) (adminPassword string, err error) {
	g, err := loadOrGenerate(filepath.Join(cfg.StateDir, secretsFile))
	if err != nil {
		return "", err
	}
	if len(cfg.Keys.Encryption) == 0 {
		cfg.Keys.Encryption = []secret.Text{secret.Text(g.Encryption)}
	}
	if len(cfg.Keys.Tokens) == 0 {
		cfg.Keys.Tokens = []secret.Text{secret.Text(g.Tokens)}
	}
	if cfg.Keys.Pepper.Empty() {
		cfg.Keys.Pepper = secret.Text(g.Pepper)
	}
	if len(cfg.Edge.SessionKeys) == 0 {
		cfg.Edge.SessionKeys = []secret.Text{secret.Text(g.SessionKey)}
	}
	if cfg.Edge.PrivateKeys.Empty() {
		cfg.Edge.PrivateKeys = secret.Text(g.EdgeKeys)
	}
	return g.AdminPassword, nil
}

func loadOrGenerate(path string) (*generated, error) {
	g, err := load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return g, err
	}
	if g, err = create(path); errors.Is(err, errExists) {
		return load(path)
	}
	return g, err
}

func load(path string) (*generated, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the operator's own state directory
	if err != nil {
		return nil, fmt.Errorf("read generated secrets: %w", err)
	}
	var g generated
	if err := json.Unmarshal(raw, &g); err != nil {
		return nil, fmt.Errorf("read %s: it is damaged (%w); without it the private database cannot be read: restore the file, or remove the state directory to start afresh", path, err)
	}
	return &g, nil
}

func create(path string) (*generated, error) {
	g, err := generateSecrets()
	if err != nil {
		return nil, err
	}
	raw, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode generated secrets: %w", err)
	}
	return g, writeSecrets(path, raw)
}

// errExists reports that another process of the same state directory was
// quicker to generate.
var errExists = errors.New("generated secrets exist already")

// writeSecrets makes the file appear whole or not at all, and never over one
// that exists: two roles may start on one state directory at once.
func writeSecrets(path string, raw []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), secretsFile+".*")
	if err != nil {
		return fmt.Errorf("write generated secrets: %w", err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(raw) // CreateTemp makes it readable by its owner alone
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write generated secrets: %w", err)
	}
	switch err := os.Link(tmp.Name(), path); {
	case errors.Is(err, fs.ErrExist):
		return errExists
	case err != nil:
		return fmt.Errorf("write generated secrets: %w", err)
	}
	return nil
}

func generateSecrets() (*generated, error) {
	g := &generated{}
	for _, dst := range []*string{&g.Encryption, &g.Tokens, &g.Pepper, &g.SessionKey} {
		k, err := secret.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		*dst = k.Reveal()
	}
	// 96 bits: typed once, by hand.
	g.AdminPassword = id.Short(rand.Reader, 12)
	keys, err := GenerateEdgeKeys()
	if err != nil {
		return nil, err
	}
	g.EdgeKeys = keys
	return g, nil
}

// GenerateEdgeKeys makes an edge's private JSON Web Key Set: a P-256 key that
// authenticates the edge (use "sig") and one that secrets are encrypted to (use
// "enc").
func GenerateEdgeKeys() (json.RawMessage, error) {
	set := jwk.NewSet()
	for use, alg := range map[string]jwa.KeyAlgorithm{"sig": jwa.ES256, "enc": jwa.ECDH_ES_A256KW} {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("generate edge key: %w", err)
		}
		k, err := jwk.FromRaw(private)
		if err != nil {
			return nil, fmt.Errorf("generate edge key: %w", err)
		}
		if err := jwk.AssignKeyID(k); err != nil {
			return nil, fmt.Errorf("generate edge key: %w", err)
		}
		if err := errors.Join(k.Set(jwk.KeyUsageKey, use), k.Set(jwk.AlgorithmKey, alg), set.AddKey(k)); err != nil {
			return nil, fmt.Errorf("generate edge key: %w", err)
		}
	}
	raw, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("encode edge keys: %w", err)
	}
	return raw, nil
}

// PublicEdgeKeys returns the public half of an edge's key set: what central is
// told.
func PublicEdgeKeys(private secret.Text) (json.RawMessage, error) {
	set, err := jwk.Parse([]byte(private.Reveal()))
	if err != nil {
		return nil, errors.New("read edge keys: not a JSON Web Key Set") // the cause could show key material
	}
	public, err := jwk.PublicSetOf(set)
	if err != nil {
		return nil, errors.New("read edge keys: a key has no public half")
	}
	raw, err := json.Marshal(public)
	if err != nil {
		return nil, fmt.Errorf("encode edge keys: %w", err)
	}
	return raw, nil
}
