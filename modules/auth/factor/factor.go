package factor

import (
	"context"
	"encoding/json"
	"time"

	"versola/modules/auth/message"
	"versola/modules/auth/throttle"
	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/modules/central/catalog/texts"
	"versola/platform/id"
)

// Factor is one way to prove who a person is.
type Factor interface {
	// Name is the factor's name in a client's flow, and the path of its page.
	Name() string
	// Field is the form's field that holds the proof.
	Field() string
	// CheckRules limit submissions.
	CheckRules() throttle.Rules
	// Begin enters the factor.
	Begin(Entry) (Begun, error)
	// Check judges a submission. An error is a fault of ours, never of the
	// proof.
	Check(context.Context, Submission) (Verdict, error)
	// Page returns what to show: the template's name, the title's key and the
	// template's data.
	Page(Shown) (template, title string, data any)
}

// Entry is a person's coming to a factor.
type Entry struct {
	Conversation []byte // names the conversation; a proof of another is worthless
	Identifier   user.Identifier
	State        json.RawMessage // what the factor stored earlier in this conversation
	Again        bool            // the person asked for the same factor once more
	Locale       string
	Client       string // its name for people
	Texts        *texts.Texts
	Settings     *catalog.TenantSettings
	Now          time.Time
}

// Begun is what entering a factor does.
type Begun struct {
	Keep    bool            // go on with what was begun earlier; the rest is empty
	Wait    time.Duration   // refuse for so long; the rest is empty
	State   json.RawMessage // what the factor keeps; nil: nothing
	Rules   throttle.Rules  // what it is counted as; "": not counted
	Message *message.Message
	Expires time.Time // the message's
}

// Subject is whom the identifier names. The zero value is nobody.
type Subject struct {
	ID                    id.UUID
	Active                bool
	PasswordHash          string
	TemporaryPasswordHash string
	// When each was set; renewing a hash does not change it. Zero: there is none.
	PasswordSet, TemporaryPasswordSet time.Time
}

// Submission is an attempt to prove something.
type Submission struct {
	Conversation []byte
	Subject      Subject
	State        json.RawMessage
	Tries        int // before this one, since the factor began
	Proof        string
	Settings     *catalog.TenantSettings
	Now          time.Time
}

// Verdict is what a submission proves. Refused: Error is the key of the text.
type Verdict struct {
	OK    bool
	Error string
	Spent bool     // refused without judging: it has expired or was tried too often
	AMR   []string // RFC 8176
	// Password is the password that was proven: a sign-in finishes only as long
	// as the person still has it. nil: something else was.
	Password *Password
	// MustChange: a password has to be chosen before the sign-in finishes.
	MustChange bool
	// NewHash replaces OldHash, whose parameters are no longer today's.
	OldHash, NewHash string
}

// Password names a password of a person without telling it: there are a
// permanent and a temporary one, and another is set at another time.
type Password struct {
	Temporary bool      `json:"temporary,omitempty"`
	Set       time.Time `json:"set"`
}

// Shown is what a page is made of.
type Shown struct {
	Identifier user.Identifier
	State      json.RawMessage
	Others     []Other
	Settings   *catalog.TenantSettings
	Now        time.Time
}

// Other is a factor that the person may choose instead.
type Other struct {
	Factor string
	ID     string // the button's id: "use-" and what is used
	Text   string // key
}
