package auth

import (
	"fmt"

	"versola/modules/auth/login"
	"versola/modules/auth/logout"
	"versola/modules/auth/message"
	"versola/modules/auth/pages"
	"versola/modules/auth/password"
	"versola/modules/auth/reset"
	"versola/modules/auth/session"
	"versola/platform/secret"
)

// OTPFake is the provider of the demo: every code is the same and is written to
// the log.
const OTPFake = "fake"

// SignIn configures how people sign in.
type SignIn struct {
	Pepper         secret.Text  // mixed into every password hash
	EncryptionKeys []secret.Key // seal what waits in rows; the active first
	OTPProvider    string       // [OTPFake]; anything else sends nothing, and says so in the log
	FakeCode       string       // the code of the fake provider
}

// newSignIn makes the real sign-in half.
func newSignIn(d Deps, sessions *session.Store, ender *logout.Ender) (signIn, error) {
	renderer, err := pages.New(d.Issuer)
	if err != nil {
		return signIn{}, fmt.Errorf("prepare pages: %w", err)
	}
	hasher, err := password.NewHasher(d.SignIn.Pepper, d.Random)
	if err != nil {
		return signIn{}, err
	}
	deps := login.Deps{
		DB: d.DB, Clock: d.Clock, Random: d.Random, Log: d.Log, PublicURL: d.Issuer, Encryption: d.SignIn.EncryptionKeys, Tokens: d.TokenKeys,
		Pages: renderer, Hasher: hasher, Sessions: sessions, Ender: ender, Sender: message.None{Log: d.Log}, Events: d.Events,
	}
	if d.SignIn.OTPProvider == OTPFake {
		deps.Sender, deps.FakeCode = message.Fake{Log: d.Log}, d.SignIn.FakeCode
	}
	engine, err := login.New(deps)
	if err != nil {
		return signIn{}, err
	}
	links, err := reset.New(reset.Deps{DB: d.DB, Clock: d.Clock, PublicURL: d.Issuer, Tokens: d.TokenKeys, Pages: renderer, Hasher: hasher,
		Ender: ender, Events: d.Events})
	if err != nil {
		return signIn{}, err
	}
	return signIn{login: engine, reset: links, pages: renderer}, nil
}
