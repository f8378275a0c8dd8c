// Package pgembed runs a private PostgreSQL cluster for a process that was
// given no database: the default on a laptop, and the database of the tests.
//
// It owns, under one state directory:
//
//	<dir>/lock            flock of the process that uses the directory; its content is that process's id
//	<dir>/postgres.log    what the server writes
//	<dir>/postgres/       the cluster's home, owned by the database user, mode 0700
//	    data/             the data directory; exists only complete (initdb works beside it and renames)
//	    socket/           the Unix socket
//	<dir>/postgres-bin/   fetched binaries, where the machine has none
//
// Invariants:
//
//   - One process per state directory. The kernel drops the lock with the
//     process, also after kill -9, so that there is no stale lock to remove.
//   - No TCP. The server listens on a Unix socket in a directory that only the
//     database user enters; that directory is the authentication.
//   - The server ends with its owner. It is stopped by [Cluster.Stop]; when the
//     owner is killed the kernel signals it (Linux), and where that did not
//     happen the next [Start] finds it by its postmaster.pid and stops it.
//   - The server does not see the terminal's Ctrl-C (a process group of its
//     own): the owner drains its requests first.
//   - A server that dies on its own is started again.
//
// PostgreSQL refuses to run as root. Then the database process runs as user
// postgres, else nobody, and where that user cannot reach the state directory
// (it lies under /root, say), the home is kept under /var/lib/versola.
package pgembed
