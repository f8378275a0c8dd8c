package event

import (
	"time"

	"github.com/labstack/echo/v4"

	"versola/platform/httpserver"
	"versola/platform/id"
)

// Kind is what happened.
type Kind string

// The kinds.
const (
	SignedIn        Kind = "sign_in.succeeded"
	SignInFailed    Kind = "sign_in.failed"
	PasswordChanged Kind = "password.changed"
	PasswordReset   Kind = "password.reset" // by a one-time link
	SessionEnded    Kind = "session.ended"
	GrantRevoked    Kind = "grant.revoked"        // by its client
	RefreshReused   Kind = "refresh_token.reused" // and its family revoked (RFC 9700 section 4.14.2)
	CodeReused      Kind = "code.reused"          // and what the first use gave revoked (RFC 6749 section 4.1.2)
)

// Reason says why a sign-in failed or a session ended.
type Reason string

// The reasons.
const (
	WrongProof    Reason = "wrong_proof"     // a wrong code or password
	SpentProof    Reason = "spent_proof"     // a code that has expired or was tried too often
	UnknownUser   Reason = "unknown_user"    // nobody has the identifier
	DisabledUser  Reason = "disabled_user"   // someone has it who may not sign in
	OtherSubject  Reason = "other_subject"   // not the person of the client's id_token_hint
	SignedOut     Reason = "signed_out"      // by the person
	AnotherSignIn Reason = "another_sign_in" // of somebody else in the same browser
)

// Event is one thing that happened. What does not apply is zero.
type Event struct {
	At        time.Time
	Kind      Kind
	Reason    Reason
	Tenant    string
	Directory string
	User      id.UUID
	Client    string
	Session   id.UUID
	Grant     id.UUID
	Factor    string   // the name of the factor that was tried
	AMR       []string // what was proven (RFC 8176)
	// Identifier is the masked form of what was typed, where nobody has it.
	Identifier string
	Address    string // the IP address of who asked
	RequestID  string
}

// From returns the event with where its request came from.
func (e Event) From(c echo.Context) Event {
	if a := httpserver.ClientAddr(c); a.IsValid() {
		e.Address = a.String()
	}
	e.RequestID = httpserver.RequestID(c)
	return e
}

// Sink takes events. It never waits: what it cannot hold it drops, and counts.
type Sink interface {
	Take(e Event)
}

// Discard is a sink that keeps nothing.
type Discard struct{}

// Take implements [Sink].
func (Discard) Take(Event) {}

// Cause is the private cause of a refusal that is an event as well. Who answers
// the request, and knows where it came from, gives it to the sink.
type Cause struct {
	Event Event
	Why   string // for the log
}

// Error implements error.
func (c *Cause) Error() string { return c.Why }
