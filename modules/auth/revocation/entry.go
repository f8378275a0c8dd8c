package revocation

import (
	"time"

	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
)

// Kinds of entries.
const (
	KindSession = "session" // subject: sid
	KindGrant   = "grant"   // subject: gid
	KindToken   = "token"   // subject: jti
	KindUser    = "user"    // subject: user id; tokens issued before At
)

// Channel is where the database tells of new entries.
const Channel = "versola_revocation"

// Entry is one line of the log, as stored and as fed to the edges.
type Entry struct {
	Seq       int64     `json:"seq"`
	Kind      string    `json:"kind"`
	Subject   string    `json:"subject"`
	At        time.Time `json:"at"`
	ExpiresAt time.Time `json:"expires_at"`
}

const (
	// minKept is the least that an entry is kept: a tenant may have shortened
	// its tokens' life a moment ago, while longer ones are still about.
	minKept = 15 * time.Minute
	// margin covers clocks that differ between issuer and verifiers.
	margin = time.Minute
)

// EntryEnd returns until when an entry made now is kept, given the longest life
// of the tokens that it concerns.
func EntryEnd(now time.Time, ttl time.Duration) time.Time {
	return now.Add(max(ttl, minKept) + margin)
}

// Horizon knows the longest life of an access token in each user directory:
// what the end of a session or the disabling of a user has to outlive.
type Horizon struct {
	longest *tenant.Derived[map[string]time.Duration]
}

// NewHorizon makes a horizon.
func NewHorizon() *Horizon {
	return &Horizon{tenant.NewDerived(func(c *catalog.Catalog) map[string]time.Duration {
		out := map[string]time.Duration{}
		for _, t := range c.Tenants() {
			for _, cl := range t.Clients() {
				out[t.Directory] = max(out[t.Directory], cl.TokenTTL())
			}
		}
		return out
	})}
}

// EntryEnd returns until when an entry about a person of t's directory is kept.
func (h *Horizon) EntryEnd(t tenant.At, now time.Time) time.Time {
	return h.DirectoryEnd(t.Catalog, t.Directory, now)
}

// DirectoryEnd returns until when an entry about a person of a directory is
// kept.
func (h *Horizon) DirectoryEnd(c *catalog.Catalog, directory string, now time.Time) time.Time {
	return EntryEnd(now, h.longest.Of(c)[directory])
}
