package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/platform/clock"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// Log is the audit log of a deployment.
type Log struct {
	db    *postgres.DB
	clock clock.Clock
	mac   *secret.MAC
}

// Deps is what a [Log] works with.
type Deps struct {
	DB         *postgres.DB
	Clock      clock.Clock
	Encryption []secret.Key // keys.encryption: authenticate the head; the active one first
}

// New makes a log. Errors: no encryption keys.
func New(d Deps) (*Log, error) {
	mac, err := secret.NewMAC(d.Encryption, "audit/head")
	if err != nil {
		return nil, fmt.Errorf("audit keys: %w", err)
	}
	return &Log{db: d.DB, clock: d.Clock, mac: mac}, nil
}

// Hash is the hash of an entry.
type Hash [sha256.Size]byte

// Anchor names a point of the chain: an entry's number and hash. Kept outside
// of the database, it proves later that nothing up to it was changed or lost.
type Anchor struct {
	Seq  int64
	Hash Hash
}

// String returns the form that [ParseAnchor] reads: "number:hexadecimal hash".
func (a Anchor) String() string {
	return strconv.FormatInt(a.Seq, 10) + ":" + hex.EncodeToString(a.Hash[:])
}

// ParseAnchor reads what [Anchor.String] wrote.
func ParseAnchor(s string) (Anchor, error) {
	number, digest, _ := strings.Cut(s, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	raw, hexErr := hex.DecodeString(digest)
	if err != nil || hexErr != nil || seq < 0 || len(raw) != sha256.Size {
		return Anchor{}, fmt.Errorf("%.100q is not an anchor such as 42:<64 hexadecimal digits>", s)
	}
	return Anchor{seq, Hash(raw)}, nil
}

// next is the hash of the entry after one.
func (a Anchor) next(body []byte) Anchor {
	h := sha256.New()
	h.Write([]byte("versola audit 1\n"))
	h.Write(a.Hash[:])
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(a.Seq+1)) //nolint:gosec // numbers are positive
	h.Write(n[:])
	h.Write(body)
	return Anchor{a.Seq + 1, Hash(h.Sum(nil))}
}

// head is the row of central.audit_head.
type head struct {
	at, base Anchor
	mac      []byte
}

func (h head) message() []byte { return []byte(h.base.String() + " " + h.at.String()) }

// authentic tells whether the head was written with our key. A log without any
// entry has none.
func (l *Log) authentic(h head) bool {
	if h.at == (Anchor{}) && h.base == (Anchor{}) && len(h.mac) == 0 {
		return true
	}
	return l.mac.Verify(h.mac, h.message())
}

const (
	lockHead = `SELECT seq, hash, base_seq, base_hash, mac FROM central.audit_head FOR UPDATE`
	insert   = `
INSERT INTO central.audit_entry (seq, hash, body, at)
SELECT seq, hash, body::json, at FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::timestamptz[]) AS e (seq, hash, body, at)`
	moveHead = `UPDATE central.audit_head SET seq = $1, hash = $2, base_seq = $3, base_hash = $4, mac = $5`
)

// Append chains entries within tx, which must be at the isolation level "read
// committed". Call it last: whoever else appends waits for tx to end.
func (l *Log) Append(ctx context.Context, tx pgx.Tx, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	now := l.clock.Now()
	bodies, times := make([]string, len(entries)), make([]time.Time, len(entries))
	for i, e := range entries {
		at, body, err := e.encode(now)
		if err != nil {
			return err
		}
		bodies[i], times[i] = string(body), at
	}
	h, err := scanHead(tx.QueryRow(ctx, lockHead))
	if err != nil {
		return fmt.Errorf("lock audit log: %w", err)
	}
	seqs, hashes := make([]int64, len(entries)), make([][]byte, len(entries))
	for i := range entries {
		h.at = h.at.next([]byte(bodies[i]))
		seqs[i], hashes[i] = h.at.Seq, append([]byte(nil), h.at.Hash[:]...)
	}
	b := &pgx.Batch{}
	b.Queue(insert, seqs, hashes, bodies, times)
	l.queueHead(b, h)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("append to audit log: %w", err)
	}
	return nil
}

// queueHead writes the head, authenticated.
func (l *Log) queueHead(b *pgx.Batch, h head) {
	b.Queue(moveHead, h.at.Seq, h.at.Hash[:], h.base.Seq, h.base.Hash[:], l.mac.Sum(nil, h.message()))
}

// Write appends entries in a transaction of their own.
func (l *Log) Write(ctx context.Context, entries ...Entry) error {
	return pgx.BeginFunc(ctx, l.db, func(tx pgx.Tx) error { return l.Append(ctx, tx, entries...) })
}

func scanHead(row pgx.Row) (head, error) {
	var h head
	var hash, base []byte
	if err := row.Scan(&h.at.Seq, &hash, &h.base.Seq, &base, &h.mac); err != nil {
		return head{}, err
	}
	if len(hash) != sha256.Size || len(base) != sha256.Size {
		return head{}, fmt.Errorf("the head's hashes are of %d and %d bytes", len(hash), len(base))
	}
	h.at.Hash, h.base.Hash = Hash(hash), Hash(base)
	return h, nil
}
