package app

import (
	"strings"

	"versola/modules/auth/event"
	"versola/modules/central/audit"
	"versola/platform/secret"
)

// auditEvents returns what takes auth's events to the audit log. A process that
// runs auth without central writes to the log itself: it is in the database that
// both share, and its chain orders writers of several processes.
func (p *process) auditEvents(encryption []secret.Key) (event.Sink, error) {
	if p.central != nil {
		return auditSink{p.central.Events()}, nil
	}
	log, err := audit.New(audit.Deps{DB: p.db, Clock: p.o.Clock, Encryption: encryption})
	if err != nil {
		return nil, err
	}
	sink, err := audit.NewSink(log, p.log, p.telemetry.Meter("versola/audit"))
	if err != nil {
		return nil, err
	}
	p.background = append(p.background, task{"audit events", sink.Run})
	return auditSink{sink}, nil
}

// auditSink writes events down as entries of the audit log.
type auditSink struct{ to *audit.Sink }

// Take implements [event.Sink].
func (s auditSink) Take(e event.Event) { s.to.Take(entryOf(&e)) }

func entryOf(e *event.Event) audit.Entry {
	out := audit.Entry{
		At: e.At, Action: string(e.Kind), Actor: actorOf(e), Tenant: e.Tenant, Address: e.Address, RequestID: e.RequestID,
		// The audit log leaves out details that are empty.
		Detail: map[string]string{
			"reason": string(e.Reason), "directory": e.Directory, "client": e.Client, "factor": e.Factor, "amr": strings.Join(e.AMR, " "),
			"identifier": e.Identifier,
		},
	}
	if !e.User.IsNil() {
		out.User = e.User.String()
	}
	if !e.Session.IsNil() {
		out.Detail["session"] = e.Session.String()
	}
	if !e.Grant.IsNil() {
		out.Detail["grant"] = e.Grant.String()
	}
	return out
}

// actorOf says who did it, as far as that was proven. Nobody's identity is by a
// sign-in that failed; a token that is used again was presented by its client,
// or by who passes for a client without a secret.
func actorOf(e *event.Event) audit.Actor {
	switch {
	case e.Kind == event.SignInFailed, e.Reason == event.AnotherSignIn:
		return audit.Actor{Kind: audit.ActorUnknown, Client: e.Client, Tenant: e.Tenant}
	case e.Kind == event.RefreshReused, e.Kind == event.CodeReused, e.Kind == event.GrantRevoked:
		return audit.Actor{Kind: audit.ActorClient, ID: e.Client, Tenant: e.Tenant}
	}
	return audit.Actor{Kind: audit.ActorUser, ID: e.User.String(), Client: e.Client, Tenant: e.Tenant}
}
