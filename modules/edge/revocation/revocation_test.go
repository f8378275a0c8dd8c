package revocation

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"versola/modules/edge/token"
	"versola/platform/clock"
	"versola/platform/id"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestSet_RevokesByEveryName(t *testing.T) {
	t.Parallel()
	s := NewSet()
	claims := token.Claims{SessionID: "s", GrantID: "g", ID: "j", Subject: "u", IssuedAt: now}
	if _, revoked := s.Revoked(&claims); revoked {
		t.Fatal("an empty set revokes")
	}
	for _, e := range []Entry{{Kind: Session, Subject: "s"}, {Kind: Grant, Subject: "g"}, {Kind: Token, Subject: "j"}, {Kind: User, Subject: "u", At: now.Add(time.Millisecond)}} {
		s := NewSet()
		e.ExpiresAt = now.Add(time.Hour)
		s.Add(e)
		if kind, revoked := s.Revoked(&claims); !revoked || kind != e.Kind {
			t.Errorf("%s: %t by %s", e.Kind, revoked, kind)
		}
		if _, revoked := s.Revoked(&token.Claims{SessionID: "g", GrantID: "s", ID: "u", Subject: "j", IssuedAt: now}); revoked {
			t.Errorf("%s: revokes what has the same text under another name", e.Kind)
		}
		if _, revoked := s.Revoked(&token.Claims{IssuedAt: now}); revoked {
			t.Errorf("%s: revokes a token without names", e.Kind)
		}
		s.Purge(now.Add(time.Hour))
		if s.Len() != 0 {
			t.Errorf("%s: is kept beyond its expiry", e.Kind)
		}
	}
}

func TestSet_UserRevocationSparesLaterTokens(t *testing.T) {
	t.Parallel()
	s := NewSet()
	s.Add(Entry{Kind: User, Subject: "u", At: now.Add(2 * time.Second), ExpiresAt: now.Add(time.Hour)}, Entry{Kind: User, Subject: "u", At: now, ExpiresAt: now})
	for at, want := range map[time.Duration]bool{0: true, time.Second: true, 2 * time.Second: false, 3 * time.Second: false} {
		if _, got := s.Revoked(&token.Claims{Subject: "u", IssuedAt: now.Add(at)}); got != want {
			t.Errorf("issued after %s: revoked %t", at, got)
		}
	}
}

// feed scripts answers; each sees the query it was asked with.
type feed struct {
	asked   chan url.Values
	answers chan any // a page, an int status, or an error
}

func (f *feed) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case f.asked <- r.URL.Query():
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	var answer any
	select {
	case answer = <-f.answers:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}}
	body := ""
	switch a := answer.(type) {
	case error:
		return nil, a
	case int:
		res.StatusCode = a
	case string:
		body = a
	case page:
		raw, _ := json.Marshal(a)
		body = string(raw)
	}
	res.Body = io.NopCloser(strings.NewReader(body))
	return res, nil
}

type nobody struct{}

func (nobody) Authorize(*http.Request) error { return nil }

func follow(t *testing.T) (*Follower, *feed, *clock.Fake) {
	t.Helper()
	c := clock.NewFake(now)
	f := &feed{make(chan url.Values), make(chan any)}
	follower := &Follower{Set: NewSet(), URL: "http://auth.test", Transport: f, Identity: nobody{}, Clock: c, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = follower.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return follower, f, c
}

func (f *feed) expect(t *testing.T, after, gaps string, answer any) {
	t.Helper()
	q := <-f.asked
	if got := q.Get("after"); got != after {
		t.Errorf("asked after %q, want %q", got, after)
	}
	if got := q.Get("gaps"); got != gaps {
		t.Errorf("asked for gaps %q, want %q", got, gaps)
	}
	f.answers <- answer
}

func entry(seq int64, subject string) Entry {
	return Entry{Seq: seq, Kind: Session, Subject: subject, At: now, ExpiresAt: now.Add(time.Hour)}
}

func TestFollower_GapsAreAskedForUntilTheyCloseOrGrowOld(t *testing.T) {
	t.Parallel()
	follower, f, c := follow(t)
	if follower.Age() >= 0 {
		t.Error("an age before the first answer")
	}
	f.expect(t, "", "", page{[]Entry{entry(1, "a"), entry(2, "b")}, 2})
	f.expect(t, "2", "", page{[]Entry{entry(5, "e")}, 5}) // 3 and 4 are being written
	f.expect(t, "5", "3,4", page{[]Entry{entry(4, "d")}, 5})
	if q := <-f.asked; q.Get("gaps") != "3" {
		t.Errorf("asked for gaps %q", q.Get("gaps"))
	}
	c.Advance(gapLife + time.Second)
	f.answers <- page{[]Entry{entry(6, "f")}, 6}
	f.expect(t, "6", "", page{nil, 6}) // 3 was rolled back
	<-f.asked
	for _, sid := range []string{"a", "b", "d", "e", "f"} {
		if _, revoked := follower.Set.Revoked(&token.Claims{SessionID: sid}); !revoked {
			t.Errorf("%s is not revoked", sid)
		}
	}
}

func TestFollower_ResynchronisesAfterAnyFailure(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]any{"connection": io.ErrUnexpectedEOF, "status": 503, "unauthorized": 401, "garbage": "<html>"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follower, f, _ := follow(t)
			f.expect(t, "", "", page{[]Entry{entry(1, "a")}, 1})
			f.expect(t, "1", "", failure)
			f.expect(t, "", "", page{[]Entry{entry(1, "a"), entry(2, "b")}, 2})
			<-f.asked
			if n := follower.Set.Len(); n != 2 {
				t.Errorf("%d revocations", n)
			}
		})
	}
}

func TestFollower_TooManyGapsFetchEverything(t *testing.T) {
	t.Parallel()
	_, f, _ := follow(t)
	f.expect(t, "", "", page{[]Entry{entry(1, "a")}, 1})
	f.expect(t, "1", "", page{[]Entry{entry(400, "b")}, 400})
	<-f.asked
	f.answers <- page{[]Entry{entry(801, "c")}, 801}
	f.expect(t, "", "", page{nil, 801})
}

// A database that was restored from an older copy gives numbers out again.
func TestFollower_NumbersThatGoBackFetchEverything(t *testing.T) {
	t.Parallel()
	follower, f, _ := follow(t)
	f.expect(t, "", "", page{[]Entry{entry(100, "a")}, 100})
	f.expect(t, "100", gapsBelow(100), page{nil, 50})
	f.expect(t, "", "", page{[]Entry{entry(51, "b")}, 51})
	<-f.asked
	for _, sid := range []string{"a", "b"} {
		if _, revoked := follower.Set.Revoked(&token.Claims{SessionID: sid}); !revoked {
			t.Errorf("%s is not revoked", sid)
		}
	}
}

// gapsBelow is what a first answer with nothing but one entry leaves open.
func gapsBelow(seq int64) string {
	var names []string
	for n := max(0, seq-firstGaps) + 1; n < seq; n++ {
		names = append(names, strconv.FormatInt(n, 10))
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// iat has whole seconds: without the grant's own time, who signs in within the
// second of a revocation would be refused.
func TestSet_UserRevocationSparesASignInOfTheSameSecond(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 500_000_000, time.UTC)
	s := NewSet()
	s.Add(Entry{Kind: User, Subject: "u", At: at, ExpiresAt: at.Add(time.Hour)})
	for _, after := range []time.Duration{-400 * time.Millisecond, 400 * time.Millisecond} {
		made := at.Add(after)
		c := &token.Claims{Subject: "u", IssuedAt: made.Truncate(time.Second), GrantID: id.NewUUID(made, rand.Reader).String()}
		if _, revoked := s.Revoked(c); revoked != (after < 0) {
			t.Errorf("a sign-in %v from the revocation: revoked is %t", after, revoked)
		}
	}
}
