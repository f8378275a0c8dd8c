package login

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"versola/modules/auth/authorization"
	"versola/modules/auth/factor"
	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/platform/id"
)

// conversation is a row of auth.conversation.
type conversation struct {
	Tenant, Client string
	BrowserHash    []byte
	Request        authorization.Request
	State          state
	Version        int
	FinishedAt     *time.Time
	ExpiresAt      time.Time
}

// state is what has been identified and proven.
type state struct {
	Identifier *user.Identifier `json:"identifier,omitempty"`
	// User is nobody for an identifier that no one has; set by the statement
	// that looks it up.
	User    id.UUID `json:"user,omitzero"`
	Account string  `json:"account,omitempty"` // the throttle's key, in hex
	Factor  string  `json:"factor,omitempty"`  // the factor that is asked for
	// Factors is what each factor keeps, Tries how often each was tried since
	// it began. Tries is never null: statements count in it.
	Factors map[string]json.RawMessage `json:"factors,omitempty"`
	Tries   map[string]int             `json:"tries"`
	// Proven is set where something else has to follow before finishing.
	Proven     *proof `json:"proven,omitempty"`
	MustChange bool   `json:"must_change,omitempty"`

	Input string `json:"input,omitempty"` // what was typed as the identifier
	Error string `json:"error,omitempty"` // key of the text to show
	// Notice is an error that belongs to the identifier page.
	Notice string `json:"notice,omitempty"`

	// Answer and Session are what a finished sign-in answered (see finish).
	Answer  []byte  `json:"answer,omitempty"`
	Session id.UUID `json:"session,omitzero"`
}

// proof is a factor that was proven.
type proof struct {
	Factor string   `json:"factor"`
	AMR    []string `json:"amr"`
	// Password is the one that was proven, if that is what was.
	Password *factor.Password `json:"password,omitempty"`
}

// maxInput bounds what is kept of a typed identifier.
const maxInput = 320

// keepable makes typed text fit to be stored and shown again: valid UTF-8
// without control characters (PostgreSQL's jsonb has no U+0000), cut.
func keepable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), maxInput)], ""))
	return text
}

// flow is how people sign in for a client.
type flow struct {
	kinds   []user.Kind
	factors []factor.Factor
	ordered bool // the client's configuration says in which order
}

// flow reads a client's flow. Names that this version does not know are
// skipped.
func (e *Engine) flow(cl *catalog.Client) flow {
	f := flow{kinds: []user.Kind{user.KindPhone, user.KindEmail}, factors: e.factors}
	if len(cl.Login.Identifiers) > 0 {
		f.kinds = nil
		for _, name := range cl.Login.Identifiers {
			if k := user.Kind(name); k == user.KindPhone || k == user.KindEmail {
				f.kinds = append(f.kinds, k)
			}
		}
	}
	if len(cl.Login.Factors) > 0 {
		f.factors, f.ordered = nil, true
		for _, name := range cl.Login.Factors {
			if known, ok := e.factor(name); ok {
				f.factors = append(f.factors, known)
			}
		}
	}
	return f
}

func (e *Engine) factor(name string) (factor.Factor, bool) {
	for _, f := range e.factors {
		if f.Name() == name {
			return f, true
		}
	}
	return nil, false
}

// preferred is what comes first where the client does not say: a code suits a
// phone, a password suits an address.
var preferred = map[user.Kind]string{user.KindPhone: "otp", user.KindEmail: "password"}

// first returns the factor that an identifier of a kind leads to. It depends on
// nothing else.
func (f flow) first(kind user.Kind) (factor.Factor, bool) {
	if len(f.factors) == 0 {
		return nil, false
	}
	if !f.ordered {
		for _, x := range f.factors {
			if x.Name() == preferred[kind] {
				return x, true
			}
		}
	}
	return f.factors[0], true
}

func (f flow) has(name string) bool {
	for _, x := range f.factors {
		if x.Name() == name {
			return true
		}
	}
	return false
}

// others are the alternatives to a factor.
func (f flow) others(current string) []factor.Other {
	var out []factor.Other
	for _, x := range f.factors {
		if x.Name() == current {
			continue
		}
		what := x.Name()
		if what == "otp" {
			what = "code"
		}
		out = append(out, factor.Other{Factor: x.Name(), ID: "use-" + what, Text: "action.use_" + what})
	}
	return out
}
