package login_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"versola/modules/auth/event"
	"versola/platform/id"
)

func TestEvents_EachSignInAndEachFailureIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		identifier, proof string
		want              []event.Event
	}{
		"password":       {email, pass, []event.Event{{Kind: event.SignedIn, User: w.users[email], Factor: "password", AMR: []string{"pwd"}}}},
		"code":           {phone, code, []event.Event{{Kind: event.SignedIn, User: w.users[phone], Factor: "otp", AMR: []string{"otp"}}}},
		"wrong password": {email, "not the password", []event.Event{{Kind: event.SignInFailed, Reason: event.WrongProof, User: w.users[email], Factor: "password"}}},
		"wrong code":     {phone, "000000", []event.Event{{Kind: event.SignInFailed, Reason: event.WrongProof, User: w.users[phone], Factor: "otp"}}},
		"disabled":       {disabled, pass, []event.Event{{Kind: event.SignInFailed, Reason: event.DisabledUser, User: w.users[disabled], Factor: "password"}}},
		"nobody": {"nobody.at.all@example.com", pass, []event.Event{{Kind: event.SignInFailed, Reason: event.UnknownUser, Factor: "password",
			Identifier: "n***@example.com"}}},
		"must choose a password first": {temporary, tempPass, nil},
	} {
		w.browser().signIn(c.identifier, c.proof)
		got := w.events.take()
		for i := range got {
			e := &got[i]
			if e.Tenant != "demo" || e.Directory == "" || e.Client == "" || e.Address == "" || e.RequestID == "" || e.At != w.clock.Now() ||
				e.Session.IsNil() != (e.Kind != event.SignedIn) {
				t.Errorf("%s: incomplete: %+v", name, *e)
			}
			e.At, e.Tenant, e.Directory, e.Client, e.Address, e.RequestID, e.Session = w.clock.Now().UTC(), "", "", "", "", "", id.Nil
		}
		for i := range c.want {
			c.want[i].At = w.clock.Now().UTC()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
