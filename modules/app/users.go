package app

import (
	"crypto/rand"
	"fmt"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/logout"
	"versola/modules/auth/message"
	"versola/modules/auth/password"
	"versola/modules/auth/reset"
	"versola/modules/auth/throttle"
	"versola/modules/auth/user"
	"versola/modules/central/audit"
	"versola/modules/central/users"
	"versola/platform/secret"
)

// administerUsers makes the part of the admin API that administers people, of
// what auth knows of them.
func (p *process) administerUsers() (func(*audit.Log) map[string]echo.HandlerFunc, error) {
	hasher, err := password.NewHasher(p.cfg.Keys.Pepper, rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("keys.pepper: %w", err)
	}
	d := users.Deps{
		DB: p.db, Users: user.NewStore(p.db, rand.Reader), Catalog: p.catalog, Sessions: logout.NewEnder(p.db, p.o.Clock, nil),
		Hasher: hasher, Adopt: password.Adopt, Clock: p.o.Clock, Random: rand.Reader,
	}
	encryption, err := secret.ParseKeys(p.cfg.Keys.Encryption)
	if err != nil {
		return nil, fmt.Errorf("keys.encryption: %w", err)
	}
	// It only takes messages: auth sends them, here or in another process.
	outbox, err := message.NewOutbox(p.db, p.o.Clock, encryption, nil, p.log)
	if err != nil {
		return nil, err
	}
	d.Links, d.Sends = &reset.Links{Clock: p.o.Clock, Random: rand.Reader, Outbox: outbox}, p.cfg.Auth.OTP.Provider != otpNone
	// A process that runs central alone has no keys of auth's tokens.
	if len(p.cfg.Keys.Tokens) > 0 {
		tokens, err := secret.ParseKeys(p.cfg.Keys.Tokens)
		if err != nil {
			return nil, fmt.Errorf("keys.tokens: %w", err)
		}
		if d.Limits, err = throttle.NewKeys(tokens); err != nil {
			return nil, fmt.Errorf("keys.tokens: %w", err)
		}
	}
	return func(log *audit.Log) map[string]echo.HandlerFunc {
		d.Audit = log
		return users.New(d).Handlers()
	}, nil
}
