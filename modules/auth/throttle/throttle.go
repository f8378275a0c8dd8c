package throttle

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/user"
	"versola/platform/secret"
)

// Rule allows at most Limit attempts of a name within any Window; the attempt
// beyond begins a Rest in which none is allowed. Durations are whole seconds.
type Rule struct {
	Name   string
	Limit  int
	Window time.Duration
	Rest   time.Duration
}

// rest is how long an account rests after a limit was reached: long enough to
// make guessing pointless, short enough to wait for.
const rest = 30 * time.Minute

// The rules of each kind of attempt. With them a six-digit code is guessed with
// a chance of at most 5 in a million per hour.
var (
	OTPRequest = encode(
		Rule{"otp_request", 2, time.Minute, rest},
		Rule{"otp_request", 5, time.Hour, rest},
	)
	OTPCheck = encode(
		Rule{"otp_check", 3, 2 * time.Minute, rest},
		Rule{"otp_check", 5, time.Hour, rest},
		guess,
	)
	Password = encode(
		Rule{"password", 5, 15 * time.Minute, rest},
		Rule{"password", 10, time.Hour, rest},
		guess,
	)
)

// ResetLink counts what is posted to one reset link: a person chooses a
// password that is refused a few times, nobody does so often.
var ResetLink = encode(Rule{"reset_link", 20, time.Hour, rest})

// guess counts codes and passwords together: having two ways to guess must not
// double the chance.
var guess = Rule{"guess", 10, time.Hour, rest}

// Rules are rules as auth.charge takes them.
type Rules string

// None allows everything and counts nothing.
const None Rules = "[]"

func encode(rules ...Rule) Rules {
	type row struct {
		Name   string `json:"name"`
		Limit  int    `json:"limit"`
		Window int    `json:"window"`
		Rest   int    `json:"rest"`
	}
	rows := make([]row, len(rules))
	for i, r := range rules {
		rows[i] = row{r.Name, r.Limit, int(r.Window.Seconds()), int(r.Rest.Seconds())}
	}
	b, err := json.Marshal(rows)
	if err != nil {
		panic(fmt.Sprintf("encode throttle rules: %v", err)) // plain values always encode
	}
	return Rules(b)
}

// Keys makes the keys of accounts.
type Keys struct{ mac *secret.MAC }

// NewKeys makes the keys from the deployment's token keys: without them a copy
// of the table does not tell whose attempts it counts.
func NewKeys(tokens []secret.Key) (*Keys, error) {
	// The active key alone: a key that depends on which one verifies would
	// count twice. A rotation of keys forgets the counters.
	if len(tokens) == 0 {
		return nil, secret.ErrKey
	}
	mac, err := secret.NewMAC(tokens[:1], "throttle")
	if err != nil {
		return nil, fmt.Errorf("make throttle key: %w", err)
	}
	return &Keys{mac}, nil
}

// Account returns the key of an identifier in a user directory.
func (k *Keys) Account(directory string, i user.Identifier) []byte {
	message := fmt.Appendf(nil, "%d:%s%s:%s", len(directory), directory, i.Kind, i.Key())
	return k.mac.Sum(nil, message)
}

// ResetLink returns the key of a link that sets a password, by its token's hash.
func (k *Keys) ResetLink(tokenHash []byte) []byte {
	return k.mac.Sum(nil, append([]byte("reset_link:"), tokenHash...))
}

const resetSQL = `DELETE FROM auth.throttle WHERE key = ANY ($1)`

// Reset forgets within tx what was counted for the identifiers of a person, so
// that they may try again at once. It returns how many had been counted.
func (k *Keys) Reset(ctx context.Context, tx pgx.Tx, directory string, identifiers []user.Identifier) (int64, error) {
	keys := make([][]byte, len(identifiers))
	for i, identifier := range identifiers {
		keys[i] = k.Account(directory, identifier)
	}
	tag, err := tx.Exec(ctx, resetSQL, keys)
	if err != nil {
		return 0, fmt.Errorf("reset limits: %w", err)
	}
	return tag.RowsAffected(), nil
}
