package app

import (
	"context"
	"crypto/rand"
	"log/slog"
	"testing"
	"time"

	"versola/db"
	"versola/modules/auth/event"
	"versola/modules/central/audit"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/pgtest"
	"versola/platform/secret"
	"versola/platform/telemetry"
)

func TestEvents_AuthWithoutCentralWritesTheLogItself(t *testing.T) {
	text, err := secret.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encryption, err := secret.ParseKeys([]secret.Text{text})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	measured, err := telemetry.New(t.Context(), telemetry.Options{ServiceName: "versola-auth", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	now := clock.NewFake(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	p := &process{o: ServeOptions{Clock: now}, log: log, telemetry: measured, db: pgtest.Open(t, db.Central())}
	sink, err := p.auditEvents(encryption)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.background) != 1 {
		t.Fatalf("%d tasks write what the sink takes", len(p.background))
	}
	person := id.NewUUID(now.Now(), rand.Reader)
	sink.Take(event.Event{At: now.Now(), Kind: event.SignedIn, Tenant: "demo", Client: "bank", User: person, Factor: "otp"})
	stopped, stop := context.WithCancel(t.Context())
	stop() // what was taken is written before the process ends
	if err := p.background[0].run(stopped); err != nil {
		t.Fatal(err)
	}
	trail, err := audit.New(audit.Deps{DB: p.db, Clock: now, Encryption: encryption})
	if err != nil {
		t.Fatal(err)
	}
	page, err := trail.Page(t.Context(), audit.Filter{User: person.String(), Action: "sign_in.succeeded"}, 0, 2)
	if err != nil || len(page) != 1 {
		t.Fatalf("the log has %d entries (%v)", len(page), err)
	}
	if r, err := trail.Verify(t.Context()); err != nil || r.Broken != nil {
		t.Errorf("the log is broken: %+v (%v)", r, err)
	}
}
