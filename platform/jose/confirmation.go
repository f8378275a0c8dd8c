package jose

import (
	"encoding/json"
	"fmt"
)

// Confirmation is the "cnf" claim of a token that only the holder of a key may
// use (RFC 7800 section 3.1). Where both members are there, both hold.
type Confirmation struct {
	// JKT is the thumbprint of a DPoP key (RFC 9449 section 6.1).
	JKT string
	// X5T is the SHA-256 of a client certificate, the member "x5t#S256" (RFC
	// 8705 section 3.1).
	X5T string
}

// Names of the members.
const (
	memberJKT = "jkt"
	memberX5T = "x5t#S256"
)

// Bound tells whether there is anything to be held.
func (c Confirmation) Bound() bool { return c != Confirmation{} }

// MarshalJSON implements json.Marshaler.
func (c Confirmation) MarshalJSON() ([]byte, error) {
	members := map[string]string{}
	for name, v := range map[string]string{memberJKT: c.JKT, memberX5T: c.X5T} {
		if v != "" {
			members[name] = v
		}
	}
	return json.Marshal(members)
}

// UnmarshalJSON implements json.Unmarshaler. A member that is not known is an
// error: whoever cannot check a constraint must not pass over it. Errors:
// [ErrMalformed].
func (c *Confirmation) UnmarshalJSON(raw []byte) error {
	members, err := Members(raw)
	if err != nil {
		return err
	}
	*c = Confirmation{}
	for name, v := range members {
		var into *string
		switch name {
		case memberJKT:
			into = &c.JKT
		case memberX5T:
			into = &c.X5T
		default:
			return fmt.Errorf("%w: cnf member %.64q", ErrMalformed, name)
		}
		if err := json.Unmarshal(v, into); err != nil || *into == "" {
			return fmt.Errorf("%w: cnf member %q is not a text", ErrMalformed, name)
		}
	}
	if !c.Bound() {
		return fmt.Errorf("%w: cnf is empty", ErrMalformed)
	}
	return nil
}
