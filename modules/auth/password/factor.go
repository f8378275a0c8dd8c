package password

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"versola/modules/auth/factor"
	"versola/modules/auth/throttle"
)

// Name is the factor's name.
const Name = "password"

// Factor implements [factor.Factor].
type Factor struct {
	hasher *Hasher
	log    *slog.Logger
}

var _ factor.Factor = (*Factor)(nil)

// New makes the factor.
func New(hasher *Hasher, log *slog.Logger) *Factor { return &Factor{hasher: hasher, log: log} }

// Name implements [factor.Factor].
func (*Factor) Name() string { return Name }

// Field implements [factor.Factor].
func (*Factor) Field() string { return "password" }

// CheckRules implements [factor.Factor].
func (*Factor) CheckRules() throttle.Rules { return throttle.Password }

// Begin stores and sends nothing.
func (*Factor) Begin(factor.Entry) (factor.Begun, error) {
	return factor.Begun{}, nil
}

// Refused is the one answer to everything that is not right: the key of a text.
const Refused = "error.password"

// Check verifies the permanent password, then the temporary one. It takes one
// hash for everybody but the few who have both.
func (f *Factor) Check(ctx context.Context, s factor.Submission) (factor.Verdict, error) {
	permanent, temporary := s.Subject.PasswordHash, s.Subject.TemporaryPasswordHash
	if !s.Subject.Active || (permanent == "" && temporary == "") {
		return factor.Verdict{Error: Refused}, f.hasher.VerifyNothing(ctx, s.Proof)
	}
	if permanent != "" {
		ok, upgrade, err := f.verify(ctx, permanent, s)
		if err != nil {
			return factor.Verdict{}, err
		}
		if ok {
			v := factor.Verdict{OK: true, AMR: []string{"pwd"}, Password: &factor.Password{Set: s.Subject.PasswordSet}}
			if upgrade && CheckLength(s.Proof) == nil {
				if v.NewHash, err = f.hasher.Hash(ctx, s.Proof); err != nil {
					return factor.Verdict{}, err
				}
				v.OldHash = permanent
			}
			return v, nil
		}
	}
	if temporary != "" {
		ok, _, err := f.verify(ctx, temporary, s)
		if err != nil {
			return factor.Verdict{}, err
		}
		if ok {
			proven := &factor.Password{Temporary: true, Set: s.Subject.TemporaryPasswordSet}
			return factor.Verdict{OK: true, AMR: []string{"pwd"}, Password: proven, MustChange: true}, nil
		}
	}
	return factor.Verdict{Error: Refused}, nil
}

// verify treats a damaged hash as a password that nothing matches, and tells
// the log.
func (f *Factor) verify(ctx context.Context, hash string, s factor.Submission) (ok, upgrade bool, err error) {
	ok, upgrade, err = f.hasher.Verify(ctx, hash, s.Proof)
	if errors.Is(err, ErrFormat) {
		f.log.ErrorContext(ctx, "a password hash is damaged", "user", s.Subject.ID.String(), "error", err)
		return false, false, f.hasher.VerifyNothing(ctx, s.Proof)
	}
	if err != nil {
		return false, false, fmt.Errorf("verify password: %w", err)
	}
	return ok, upgrade, nil
}

// shown is the data of the page "password".
type shown struct {
	Address string
	Others  []factor.Other
}

// Page implements [factor.Factor].
func (*Factor) Page(s factor.Shown) (template, title string, data any) {
	return "password", "password.title", shown{s.Identifier.Value, s.Others}
}
