package login

import (
	"versola/modules/auth/event"
	"versola/modules/auth/factor"
	"versola/platform/id"
)

// tell says what happened in a conversation.
func (e *Engine) tell(v *visit, what event.Event) {
	what.At, what.Tenant, what.Directory, what.Client = v.now, v.t.ID, v.t.Directory, v.conversation.Client
	e.d.Events.Take(what.From(v.c))
}

// tellFinished says that a person has signed in, and what they changed by it.
func (e *Engine) tellFinished(v *visit, f finish, sessionID id.UUID) {
	e.tell(v, event.Event{Kind: event.SignedIn, User: f.user, Session: sessionID, Factor: v.conversation.State.Factor, AMR: f.amr})
	if f.chosenHash != "" {
		e.tell(v, event.Event{Kind: event.PasswordChanged, User: f.user, Session: sessionID})
	}
}

// tellFailed says that a proof was refused. Whom it is about is said by the
// person's id alone; where nobody has the identifier, by its masked form.
func (e *Engine) tellFailed(v *visit, f factor.Factor, s factor.Subject, verdict factor.Verdict) {
	what := event.Event{Kind: event.SignInFailed, Reason: event.WrongProof, User: s.ID, Factor: f.Name()}
	switch {
	case s.ID.IsNil():
		what.Reason = event.UnknownUser
		if who := v.conversation.State.Identifier; who != nil {
			what.Identifier = who.Masked()
		}
	case !s.Active:
		what.Reason = event.DisabledUser
	case verdict.Spent:
		what.Reason = event.SpentProof
	}
	e.tell(v, what)
}
