// Package postgres is how the program reaches PostgreSQL: a pool that counts
// its statements, a listener that reconnects, migrations that are safe to run
// several at once, a batched cleanup of expired rows, and one answer to the
// question whether an error means "the database is away" ([Unavailable]).
package postgres
