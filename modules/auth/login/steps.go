package login

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/factor"
	"versola/modules/auth/oauth"
	"versola/modules/auth/pages"
	"versola/modules/auth/user"
	"versola/platform/id"
)

// identifierPage is the data of the page "identifier".
type identifierPage struct {
	Label, Type, InputMode, Value string
	Phone                         bool // explain how to write a phone number
}

func (e *Engine) identifierPage(v *visit, value string) pages.View {
	d := identifierPage{Label: "field.identifier.both", Type: "text", InputMode: "email", Value: value, Phone: true}
	if len(v.flow.kinds) == 1 {
		switch v.flow.kinds[0] {
		case user.KindPhone:
			d.Label, d.Type, d.InputMode = "field.identifier.phone", "tel", "tel"
		case user.KindEmail:
			d.Label, d.Type, d.Phone = "field.identifier.email", "email", false
		}
	}
	page := e.view(v)
	page.Name, page.Title, page.Data, page.Error = "identifier", "identifier.title", d, v.conversation.State.Notice
	return page
}

// showIdentifier answers GET identifier. The page is there for as long as the
// conversation is: going back to it is how a person corrects a typo.
func (e *Engine) showIdentifier(c echo.Context) error {
	v, err := e.enterVisit(c)
	if v == nil {
		return err
	}
	if len(v.flow.kinds) == 0 || len(v.flow.factors) == 0 {
		return e.d.Pages.Error(c, http.StatusBadRequest, oauth.UnauthorizedClient, "the client's login flow has no identifier or no factor that this server knows")
	}
	return e.d.Pages.Render(c, e.identifierPage(v, v.conversation.State.Input)) //nolint:wrapcheck // says what it is
}

// identify answers POST identifier. Which factor follows depends on the kind of
// identifier and the flow alone.
func (e *Engine) identify(c echo.Context) error {
	v, err := e.enterVisit(c)
	if v == nil {
		return err
	}
	typed := v.form.Get("identifier")
	who, problem := e.readIdentifier(v, typed)
	s := &v.conversation.State
	if v.version != v.conversation.Version && (problem != "" || s.Identifier != nil && *s.Identifier == who) {
		// A page of the past that asks for nothing new.
		return v.goTo(e.next(v))
	}
	if problem != "" {
		err := e.patch(c.Request().Context(), v.hash, v.conversation.Version, v.now, map[string]any{"notice": problem, "input": keepable(typed)})
		if err != nil {
			return err
		}
		return v.goTo("identifier")
	}
	f, ok := v.flow.first(who.Kind)
	if !ok {
		return v.goTo("identifier")
	}
	fresh := state{Identifier: &who, Tries: map[string]int{}, Input: keepable(typed)}
	if s.Identifier != nil && *s.Identifier == who && s.Proven == nil {
		fresh.Factors, fresh.Tries = s.Factors, s.Tries
	}
	return e.enterFactor(v, f, fresh, &who, false)
}

func (e *Engine) readIdentifier(v *visit, typed string) (who user.Identifier, problem string) {
	only := user.Kind("")
	if len(v.flow.kinds) == 1 {
		only = v.flow.kinds[0]
	}
	who, err := user.ParseIdentifier(typed)
	switch {
	case only == user.KindPhone && (err != nil || who.Kind != only):
		return who, "error.phone"
	case only == user.KindEmail && (err != nil || who.Kind != only):
		return who, "error.email"
	case err != nil:
		return who, "error.identifier"
	case who.Kind == user.KindPhone && !allowedPrefix(v.t.Settings.PhonePrefixes, who.Value):
		return who, "error.region"
	}
	return who, ""
}

func allowedPrefix(prefixes []string, phone string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(phone, p) {
			return true
		}
	}
	return len(prefixes) == 0
}

// choose answers POST choose: another factor, or the same once more.
func (e *Engine) choose(c echo.Context) error {
	v, err := e.enterVisit(c)
	if v == nil {
		return err
	}
	s := v.conversation.State
	f, known := e.factor(v.form.Get("factor"))
	if v.version != v.conversation.Version || !known || !v.flow.has(f.Name()) || s.Identifier == nil || s.Proven != nil {
		return v.goTo(e.next(v))
	}
	return e.enterFactor(v, f, s, nil, s.Factor == f.Name())
}

// enterFactor moves the conversation to a factor. lookUp is the identifier to
// look up; nil: the person stays.
func (e *Engine) enterFactor(v *visit, f factor.Factor, s state, lookUp *user.Identifier, again bool) error {
	page := e.view(v)
	begun, err := f.Begin(factor.Entry{
		Conversation: v.hash, Identifier: *s.Identifier, State: s.Factors[f.Name()], Again: again, Locale: v.locale, Client: page.Client, Texts: v.t.Texts,
		Settings: &v.t.Settings, Now: v.now,
	})
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	if begun.Wait > 0 {
		return e.wait(v, e.factorPage(v, f), "error.wait", begun.Wait)
	}
	account := e.keys.Account(v.t.Directory, *s.Identifier)
	s.Account, s.Factor, s.Error, s.Notice = hex.EncodeToString(account), f.Name(), "", ""
	if !begun.Keep {
		// Other factors keep what they have, their tries too: going back and
		// forth gives nobody more of them.
		s.Factors = with(s.Factors, f.Name(), begun.State)
		s.Tries = maps.Clone(s.Tries)
		delete(s.Tries, f.Name())
	}
	n := entry{
		handleHash: v.hash, version: v.conversation.Version, now: v.now, account: account, rules: begun.Rules, directory: v.t.Directory,
		identifier: lookUp, known: s.User, state: s, tenant: v.t.ID, expires: begun.Expires,
	}
	if begun.Message != nil {
		n.messageID = id.NewUUID(v.now, e.d.Random)
		if n.sealed, err = e.outbox.Seal(n.messageID, *begun.Message); err != nil {
			return err //nolint:wrapcheck // says what it is
		}
	}
	result, retryAt, err := e.enter(v.c.Request().Context(), n)
	if err != nil {
		return err
	}
	switch result {
	case throttled:
		return e.refuseEntry(v, lookUp, retryAt)
	case lost:
		return v.goTo("")
	}
	if n.sealed != nil {
		e.outbox.Wake()
	}
	return v.goTo(f.Name())
}

// refuseEntry shows the page that the person is on, with the time to wait.
func (e *Engine) refuseEntry(v *visit, lookUp *user.Identifier, retryAt time.Time) error {
	page := e.identifierPage(v, keepable(v.form.Get("identifier")))
	if lookUp == nil {
		if on, ok := e.factor(v.conversation.State.Factor); ok {
			page = e.factorPage(v, on)
		}
	}
	return e.wait(v, page, "error.throttled", retryAt.Sub(v.now))
}

// with returns m with one entry changed; an empty value removes it.
func with(m map[string]json.RawMessage, name string, value json.RawMessage) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(m)+1)
	maps.Copy(out, m)
	delete(out, name)
	if len(value) > 0 {
		out[name] = value
	}
	return out
}

// showFactor answers GET {factor}.
func (e *Engine) showFactor(f factor.Factor) echo.HandlerFunc {
	return func(c echo.Context) error {
		v, err := e.enterVisit(c)
		if v == nil {
			return err
		}
		if next := e.next(v); next != f.Name() {
			return v.goTo(next)
		}
		return e.d.Pages.Render(c, e.factorPage(v, f)) //nolint:wrapcheck // says what it is
	}
}

// prove answers POST {factor}.
func (e *Engine) prove(f factor.Factor) echo.HandlerFunc {
	return func(c echo.Context) error {
		v, err := e.arrive(c)
		if v == nil {
			return err
		}
		ctx := c.Request().Context()
		t, err := e.attempt(ctx, v, f)
		if err != nil {
			return err
		}
		if ok, err := e.admit(v, t.conversation); !ok {
			return err
		}
		switch {
		case t.outcome == throttled:
			return e.wait(v, e.factorPage(v, f), "error.throttled", t.retryAt.Sub(v.now))
		case t.outcome == lost:
			return e.settle(v)
		}
		s := &v.conversation.State
		verdict, err := f.Check(ctx, factor.Submission{
			Conversation: v.hash, Subject: t.subject, State: s.Factors[f.Name()], Tries: s.Tries[f.Name()], Proof: v.form.Get(f.Field()),
			Settings: &v.t.Settings, Now: v.now,
		})
		if err != nil {
			return err //nolint:wrapcheck // says what it is
		}
		return e.proven(v, f, t, verdict)
	}
}

const (
	// settleMost is how long the second half of a double click waits for the
	// first: a little longer than a password's turn and its hash may take.
	settleMost = 3 * time.Second
	// settleEvery is how often it looks.
	settleEvery = 30 * time.Millisecond
)

// settle answers an attempt that came too late. Where the attempt before it was
// made from the same form and is still being judged, that is the first half of
// a double click, whose answer the browser will throw away: this one waits for
// it and gives it.
func (e *Engine) settle(v *visit) error {
	ctx := v.c.Request().Context()
	deadline := time.NewTimer(settleMost)
	defer deadline.Stop()
	look := time.NewTicker(settleEvery)
	defer look.Stop()
	for v.conversation.Version == v.version+1 && v.conversation.State.Proven == nil {
		select {
		case <-look.C:
		case <-deadline.C:
			return v.goTo(e.next(v))
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // nobody waits any more
		}
		conv, err := e.load(ctx, v.hash)
		if err != nil {
			return err
		}
		if ok, err := e.admit(v, conv); !ok {
			return err
		}
	}
	return v.goTo(e.next(v))
}

// proven is what follows a checked attempt.
func (e *Engine) proven(v *visit, f factor.Factor, t try, verdict factor.Verdict) error {
	ctx := v.c.Request().Context()
	switch {
	case !verdict.OK:
		e.tellFailed(v, f, t.subject, verdict)
		if err := e.patch(ctx, v.hash, t.version, v.now, map[string]any{"error": verdict.Error}); err != nil {
			return err
		}
		return v.goTo(f.Name())
	case verdict.MustChange:
		fields := map[string]any{"proven": proof{f.Name(), verdict.AMR, verdict.Password}, "must_change": true, "error": ""}
		if err := e.patch(ctx, v.hash, t.version, v.now, fields); err != nil {
			return err
		}
		return v.goTo("")
	}
	return e.finish(v, finish{
		version: t.version, user: t.subject.ID, amr: verdict.AMR, proof: v.form.Get(f.Field()), password: verdict.Password,
		oldHash: verdict.OldHash, newHash: verdict.NewHash,
	})
}

// cancel answers POST cancel: the client hears access_denied.
func (e *Engine) cancel(c echo.Context) error {
	v, err := e.enterVisit(c)
	if v == nil {
		return err
	}
	// Which page the person gave up on does not matter, so neither does the
	// form's version.
	ok, err := e.consume(v, v.conversation.Version)
	if err != nil {
		return err
	}
	if !ok {
		return e.stay(v)
	}
	return e.respond.Error(c, v.t, &v.conversation.Request, oauth.Refuse(oauth.AccessDenied, "the sign-in was cancelled"))
}
