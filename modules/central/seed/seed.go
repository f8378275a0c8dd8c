package seed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"

	"versola/configs"
	"versola/modules/central/apply"
	"versola/modules/central/change"
	"versola/platform/clock"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// Names of what is seeded, in central.seed.
const (
	nameSystem = "system"
	nameDemo   = "demo"
)

// Params fill in the documents' variables.
type Params struct {
	EdgeID     string          // ${EDGE_ID}
	EdgeURL    string          // ${EDGE_URL}: the edge's public URL, without a trailing slash
	EdgeJWKS   json.RawMessage // ${EDGE_JWKS}: the edge's public keys; empty: no edge is declared
	CentralURL string          // ${CENTRAL_URL}: where the edge reaches the internal listener
	BankURL    string          // ${BANK_URL}: the demo's upstream
	// AdminPassword is the administrator's first password, which has to be
	// changed at the first sign-in; empty: no administrator is declared.
	AdminPassword secret.Text // ${ADMIN_PASSWORD}
}

// files are the documents of the system tenant that the parameters suffice for.
func (p Params) files() fs.FS {
	files := without{FS: configs.System()}
	if len(p.EdgeJWKS) == 0 {
		files.names = append(files.names, "edge.yaml")
	}
	if p.AdminPassword.Empty() {
		files.names = append(files.names, "administrator.yaml")
	}
	return files
}

// Deps is what seeding works with.
type Deps struct {
	DB      *postgres.DB
	Applier *apply.Applier
	Clock   clock.Clock
}

// System loads the system tenant and, where its password is given, its
// administrator and, where its keys are, the edge: of them, what is not there
// yet. It tells whether it did so now, which it does once in the life of a
// deployment.
func System(ctx context.Context, d Deps, p Params) (bool, error) {
	if len(p.EdgeJWKS) == 0 {
		p.EdgeID = ""
	}
	return once(ctx, d, nameSystem, p.files(), p)
}

// Restore loads what is missing of the system tenant and the edge, again, within
// a transaction of its own. It returns how many entities that were.
func Restore(ctx context.Context, d Deps, p Params, actor change.Actor) (int, error) {
	docs, err := apply.ParseFS(p.files(), p.variables())
	if err != nil {
		return 0, fmt.Errorf("restore %s: %w", nameSystem, err)
	}
	changes, err := d.Applier.Apply(ctx, docs, apply.Options{Actor: actor, KeepExisting: true})
	if err != nil {
		return 0, fmt.Errorf("restore %s: %w", nameSystem, err)
	}
	n := 0
	for _, c := range changes {
		if c.Action == change.Created {
			n++
		}
	}
	return n, nil
}

// Demo loads the demo tenant, whose edge [System] has declared. It tells
// whether it did so now.
func Demo(ctx context.Context, d Deps, p Params) (bool, error) {
	return once(ctx, d, nameDemo, configs.Demo(), p)
}

const holdsDemo = `
SELECT EXISTS (SELECT FROM central.seed WHERE name = '` + nameDemo + `') AND EXISTS (SELECT FROM central.tenant WHERE id = 'demo')`

// HoldsDemo tells whether a database was given the demo tenant and has it
// still: its people's passwords and its clients' secrets are public.
func HoldsDemo(ctx context.Context, db *postgres.DB) (bool, error) {
	var holds bool
	if err := db.QueryRow(ctx, holdsDemo).Scan(&holds); err != nil {
		return false, fmt.Errorf("look for the demo tenant: %w", err)
	}
	return holds, nil
}

const (
	isSeeded = `SELECT EXISTS (SELECT FROM central.seed WHERE name = $1)`
	// claim waits for a transaction that claims the same name, and then does
	// nothing if that one committed.
	claim = `INSERT INTO central.seed (name, applied_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`
)

// errClaimed ends the transaction of the process that came second.
var errClaimed = errors.New("seeded by another process")

func once(ctx context.Context, d Deps, name string, files fs.FS, p Params) (bool, error) {
	var done bool
	if err := d.DB.QueryRow(ctx, isSeeded, name).Scan(&done); err != nil {
		return false, fmt.Errorf("look whether %s is seeded: %w", name, err)
	}
	if done {
		return false, nil
	}
	docs, err := apply.ParseFS(files, p.variables())
	if err != nil {
		return false, fmt.Errorf("seed %s: %w", name, err)
	}
	err = pgx.BeginFunc(ctx, d.DB, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, claim, name, d.Clock.Now())
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return errClaimed
		}
		if _, err := d.Applier.In(ctx, tx, docs, apply.Options{Actor: change.System("seed"), KeepExisting: true}); err != nil {
			return err
		}
		return note(ctx, tx, d.Clock.Now(), builtIn(docs.Entities()))
	})
	switch {
	case errors.Is(err, errClaimed):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("seed %s: %w", name, err)
	}
	return true, nil
}

func (p Params) variables() map[string]string {
	return map[string]string{
		"EDGE_ID":        p.EdgeID,
		"EDGE_URL":       p.EdgeURL,
		"EDGE_JWKS":      string(p.EdgeJWKS),
		"CENTRAL_URL":    p.CentralURL,
		"BANK_URL":       p.BankURL,
		"ADMIN_PASSWORD": p.AdminPassword.Reveal(),
	}
}

// without is a file system in which some files are not listed.
type without struct {
	fs.FS
	names []string
}

// ReadDir implements fs.ReadDirFS.
func (w without) ReadDir(dir string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, dir)
	if err != nil {
		return nil, err
	}
	kept := entries[:0]
	for _, e := range entries {
		if dir != "." || !slices.Contains(w.names, e.Name()) {
			kept = append(kept, e)
		}
	}
	return kept, nil
}
