package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// verifyPage is how many entries are read at once: about a megabyte, and far
// below the time that a statement may take.
const verifyPage = 2000

// Report is what a verification found.
type Report struct {
	Entries int64  // how many were proven
	First   int64  // the first one's number; those before were removed by retention
	Head    Anchor // the newest one proven
	// Broken is the first fault, nil when the chain is whole.
	Broken *Fault
}

// Fault is where the chain breaks.
type Fault struct {
	Seq    int64 // the first entry that cannot be proven; 0: the log as a whole
	Reason string
}

// String says where and why.
func (f Fault) String() string {
	if f.Seq == 0 {
		return f.Reason
	}
	return fmt.Sprintf("entry %d: %s", f.Seq, f.Reason)
}

const (
	// One statement, so that the head and the newest entry are of one instant.
	selectHead = `SELECT seq, hash, base_seq, base_hash, mac, (SELECT COALESCE(max(seq), 0) FROM central.audit_entry) FROM central.audit_head`
	selectPage = `SELECT seq, hash, body::text, at FROM central.audit_entry WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3`
)

// Verify proves the chain from its beginning to the head that it has now,
// while the log goes on being written. anchors are points that were noted
// before. Errors: the database's.
func (l *Log) Verify(ctx context.Context, anchors ...Anchor) (*Report, error) {
	var h head
	var hash, base []byte
	var newest int64
	if err := l.db.QueryRow(ctx, selectHead).Scan(&h.at.Seq, &hash, &h.base.Seq, &base, &h.mac, &newest); err != nil {
		return nil, fmt.Errorf("read head of audit log: %w", err)
	}
	copy(h.at.Hash[:], hash)
	copy(h.base.Hash[:], base)
	v := &verification{Report: Report{First: h.base.Seq + 1, Head: h.base}, anchors: map[int64]Hash{}}
	for _, a := range anchors {
		v.anchors[a.Seq] = a.Hash
	}
	v.anchored()
	for v.Broken == nil && v.Head.Seq < newest {
		if err := l.verifyPage(ctx, v, newest); err != nil {
			return nil, err
		}
	}
	v.end(h, l.authentic(h))
	return &v.Report, nil
}

type verification struct {
	Report
	anchors map[int64]Hash
}

func (l *Log) verifyPage(ctx context.Context, v *verification, newest int64) error {
	rows, err := l.db.Query(ctx, selectPage, v.Head.Seq, newest, verifyPage)
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	var r row
	n := 0
	_, err = pgx.ForEachRow(rows, []any{&r.seq, &r.hash, &r.body, &r.at}, func() error {
		n++
		if v.Broken == nil {
			v.entry(r)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	if n == 0 && v.Broken == nil {
		v.fault(v.Head.Seq+1, "is missing")
	}
	return nil
}

type row struct {
	seq  int64
	hash []byte
	body string
	at   time.Time
}

func (v *verification) fault(seq int64, reason string) {
	if v.Broken == nil {
		v.Broken = &Fault{seq, reason}
	}
}

// entry proves one more.
func (v *verification) entry(r row) {
	if r.seq != v.Head.Seq+1 {
		v.fault(v.Head.Seq+1, "is missing")
		return
	}
	next := v.Head.next([]byte(r.body))
	if string(next.Hash[:]) != string(r.hash) {
		v.fault(r.seq, "does not follow from the entry before it: one of the two was edited, moved or replaced")
		return
	}
	var said struct {
		At time.Time `json:"at"`
	}
	if err := json.Unmarshal([]byte(r.body), &said); err != nil || !said.At.Equal(r.at) {
		v.fault(r.seq, "is filed under another time than it says")
		return
	}
	v.Head = next
	v.Entries++
	v.anchored()
}

// anchored compares with what was noted of this point.
func (v *verification) anchored() {
	want, ok := v.anchors[v.Head.Seq]
	if !ok {
		return
	}
	delete(v.anchors, v.Head.Seq)
	if want != v.Head.Hash {
		v.fault(v.Head.Seq, "is not the one that the anchor was taken of: the chain was rewritten up to here")
	}
}

// end compares the end of the chain with the head.
func (v *verification) end(h head, authentic bool) {
	switch {
	case v.Broken != nil:
	case v.Head.Seq < h.at.Seq:
		v.fault(v.Head.Seq+1, fmt.Sprintf("is missing: the log was cut off, its head is entry %d", h.at.Seq))
	case v.Head.Seq > h.at.Seq:
		v.fault(h.at.Seq+1, "is beyond the head of the log")
	case v.Head.Hash != h.at.Hash:
		v.fault(h.at.Seq, "is not what the head of the log says")
	case !authentic:
		v.fault(0, "the head was not written with keys.encryption: the end of the log may have been rewritten or cut off")
	}
	for seq := range v.anchors {
		if v.Broken == nil && seq > v.Head.Seq {
			v.fault(v.Head.Seq+1, fmt.Sprintf("is missing: an anchor was taken of entry %d", seq))
		}
	}
}
