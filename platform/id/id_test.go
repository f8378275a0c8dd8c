package id_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"versola/platform/id"
)

func TestNewUUID_IsVersion7AndOrderedByTime(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(0x0123456789ab)
	u := id.NewUUID(at, bytes.NewReader(bytes.Repeat([]byte{0xff}, 10)))
	if got, want := u.String(), "01234567-89ab-7fff-bfff-ffffffffffff"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	earlier, later := id.NewUUID(at, rand.Reader), id.NewUUID(at.Add(time.Millisecond), rand.Reader)
	if bytes.Compare(earlier[:], later[:]) >= 0 {
		t.Errorf("%s is not before %s", earlier, later)
	}
}

func TestNewUUID_PanicsWithoutRandomness(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("an identifier was made of nothing")
		}
	}()
	id.NewUUID(time.UnixMilli(1), strings.NewReader("short"))
}

func TestParseUUID_ReadsTheCanonicalFormOnly(t *testing.T) {
	t.Parallel()
	want := id.NewUUID(time.UnixMilli(1e12), rand.Reader)
	for _, s := range []string{want.String(), strings.ToUpper(want.String())} {
		if got, err := id.ParseUUID(s); err != nil || got != want {
			t.Errorf("%s: got %s, %v", s, got, err)
		}
	}
	s := want.String()
	for name, bad := range map[string]string{
		"empty":           "",
		"no dashes":       strings.ReplaceAll(s, "-", ""),
		"braces":          "{" + s + "}",
		"urn":             "urn:uuid:" + s,
		"a dash moved":    s[:7] + "-" + s[7:8] + s[9:],
		"not hexadecimal": "g" + s[1:],
		"cut":             s[:35],
		"longer":          s + "0",
		"space inside":    " " + s[1:],
		"NUL inside":      "\x00" + s[1:],
		"multibyte":       "é" + s[2:],
	} {
		if got, err := id.ParseUUID(bad); !errors.Is(err, id.ErrMalformed) || !got.IsNil() {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}

func TestUUID_TravelsThroughJSONAndPostgreSQL(t *testing.T) {
	t.Parallel()
	want := id.NewUUID(time.UnixMilli(1e12), rand.Reader)
	raw, err := json.Marshal(map[string]id.UUID{"id": want})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]id.UUID
	if err := json.Unmarshal(raw, &back); err != nil || back["id"] != want {
		t.Errorf("%s: got %v, %v", raw, back, err)
	}
	if err := json.Unmarshal([]byte(`{"id":"x"}`), &back); !errors.Is(err, id.ErrMalformed) {
		t.Errorf("got %v", err)
	}
	v, err := want.UUIDValue()
	var scanned id.UUID
	if err != nil || scanned.ScanUUID(v) != nil || scanned != want {
		t.Errorf("scanned %s, %v", scanned, err)
	}
	if v, _ := id.Nil.UUIDValue(); v.Valid {
		t.Error("the nil uuid is not NULL")
	}
	if err := scanned.ScanUUID(pgtype.UUID{}); err != nil || !scanned.IsNil() {
		t.Errorf("NULL is %s, %v", scanned, err)
	}
}

func TestNewHandle_Is256BitsWithoutPadding(t *testing.T) {
	t.Parallel()
	a, b := id.NewHandle(rand.Reader), id.NewHandle(rand.Reader)
	if len(a) != 43 || a == b || strings.ContainsAny(a, "+/=") {
		t.Errorf("got %q and %q", a, b)
	}
	if s := id.Short(rand.Reader, 12); len(s) != 16 {
		t.Errorf("12 bytes are %q", s)
	}
}

func FuzzParseUUID(f *testing.F) {
	f.Add("01234567-89ab-7fff-bfff-ffffffffffff")
	f.Fuzz(func(t *testing.T, s string) {
		if u, err := id.ParseUUID(s); err == nil && u.String() != strings.ToLower(s) {
			t.Errorf("%q is read as %s", s, u)
		}
	})
}
