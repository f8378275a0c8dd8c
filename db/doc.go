// Package db holds the schema of each module as goose migrations, embedded in
// the binary. auth and central share a database (schemas "auth" and
// "central"); edge has its own (schema "edge"), which in development may be the
// same one.
package db
