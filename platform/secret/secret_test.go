package secret_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"versola/platform/secret"
)

func TestText_NeverPrintsItself(t *testing.T) {
	t.Parallel()
	const value = "hunter2hunter2"
	type config struct {
		URL    secret.Text    `json:"url" yaml:"url"`
		List   []secret.Text  `json:"list" yaml:"list"`
		Ptr    *secret.Text   `json:"ptr" yaml:"ptr"`
		ByName map[string]any `json:"by_name" yaml:"by_name"`
	}
	text := secret.Text(value)
	c := config{URL: text, List: []secret.Text{text}, Ptr: &text, ByName: map[string]any{"a": text}}
	printed := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T %[1]v", "%10s", "%-40v", "%U"} {
		for _, v := range []any{text, &text, c, &c, []any{text}} {
			printed[fmt.Sprintf("%s of %T", verb, v)] = fmt.Sprintf(verb, v)
		}
	}
	printed["Sprint"] = fmt.Sprint(text, c)
	printed["error"] = fmt.Errorf("connect to %s: %w", text, errors.New("refused")).Error()
	for name, marshal := range map[string]func(any) ([]byte, error){"json": json.Marshal, "yaml": yaml.Marshal} {
		b, err := marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		printed[name] = string(b)
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("start", "url", text, "config", c, slog.Group("g", "list", c.List, "any", slog.AnyValue(text)))
	}
	printed["slog"] = log.String()
	hexed := fmt.Sprintf("%x", value)
	for name, got := range printed {
		if strings.Contains(got, value) || strings.Contains(strings.ToLower(got), hexed) || strings.Contains(got, "hunter") {
			t.Errorf("%s shows the secret: %s", name, got)
		}
	}
	if text.Reveal() != value || text.String() != "[redacted]" {
		t.Errorf("revealed %q, shown as %q", text.Reveal(), text)
	}
	if e := secret.Text(""); e.String() != "" || !e.Empty() {
		t.Error("an empty text must show that it is empty")
	}
}

func TestKey_NeverPrintsItself(t *testing.T) {
	t.Parallel()
	k := key(t, 7)
	raw, _ := json.Marshal(k)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("start", "key", k)
	for _, got := range []string{fmt.Sprintf("%v %+v %#v %s %x %d", k, k, k, k, k, k), fmt.Sprintf("%v", []secret.Key{k}), string(raw), log.String()} {
		if strings.Contains(got, "7 7") || strings.Contains(got, "0x7") || strings.Contains(got, "0707") || strings.Contains(got, "BwcH") {
			t.Errorf("shows the key: %s", got)
		}
	}
}

func text(fill byte) secret.Text {
	return secret.Text(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, secret.KeyBytes)))
}

func key(t *testing.T, fill byte) secret.Key {
	t.Helper()
	k, err := secret.ParseKey(text(fill))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestParseKey_TakesAnyBase64Of32Bytes(t *testing.T) {
	t.Parallel()
	raw := bytes.Repeat([]byte{0xfb, 0xff}, 16)
	var ids []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		k, err := secret.ParseKey(secret.Text(enc.EncodeToString(raw)))
		if err != nil || !bytes.Equal(k.Value, raw) {
			t.Errorf("got %v, %v", k, err)
		}
		ids = append(ids, k.ID)
	}
	for _, other := range ids {
		if other != ids[0] || other == "" {
			t.Errorf("one key has the ids %v", ids)
		}
	}
	for name, bad := range map[string]secret.Text{
		"empty": "", "short": secret.Text(base64.StdEncoding.EncodeToString(raw[:31])),
		"long": secret.Text(base64.StdEncoding.EncodeToString(append(raw[:32:32], 0))), "hex": secret.Text(strings.Repeat("ab", 32)),
		"no base64": "changeme changeme changeme changeme changeme",
	} {
		if _, err := secret.ParseKey(bad); !errors.Is(err, secret.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := secret.ParseKeys(nil); !errors.Is(err, secret.ErrKey) {
		t.Errorf("no keys: %v", err)
	}
	if _, err := secret.ParseKeys([]secret.Text{text(1), "hunter2"}); !errors.Is(err, secret.ErrKey) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("one bad key: %v", err)
	}
}

func TestGenerateKey_IsReadBack(t *testing.T) {
	t.Parallel()
	a, err := secret.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := secret.ParseKey(a); err != nil {
		t.Error(err)
	}
	if _, err := secret.GenerateKey(strings.NewReader("short")); err == nil {
		t.Error("a key was made without randomness")
	}
}

func TestDerive_GivesEachPurposeItsOwnKey(t *testing.T) {
	t.Parallel()
	k := key(t, 1)
	a, b := secret.Derive([]secret.Key{k}, "a")[0], secret.Derive([]secret.Key{k}, "b")[0]
	if bytes.Equal(a.Value, b.Value) || bytes.Equal(a.Value, k.Value) || a.ID != k.ID {
		t.Error("purposes share a key")
	}
}

func keyring(t *testing.T, purpose string, keys ...secret.Key) *secret.Keyring {
	t.Helper()
	r, err := secret.NewKeyring(keys, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestKeyring_OpensWhatItSealedAndNothingElse(t *testing.T) {
	t.Parallel()
	r := keyring(t, "rows", key(t, 1))
	sealed := r.Seal([]byte("plain"), "row 1")
	if got, err := r.Open(sealed, "row 1"); err != nil || string(got) != "plain" {
		t.Fatalf("got %q, %v", got, err)
	}
	if bytes.Equal(sealed, r.Seal([]byte("plain"), "row 1")) {
		t.Error("two seals of one text are equal")
	}
	if _, err := r.Open(sealed, "row 2"); !errors.Is(err, secret.ErrOpen) {
		t.Errorf("moved to another row: %v", err)
	}
	if _, err := keyring(t, "cookies", key(t, 1)).Open(sealed, "row 1"); !errors.Is(err, secret.ErrOpen) {
		t.Errorf("under another purpose: %v", err)
	}
	for i := range sealed {
		altered := bytes.Clone(sealed)
		altered[i] ^= 1
		if _, err := r.Open(altered, "row 1"); !errors.Is(err, secret.ErrOpen) {
			t.Errorf("byte %d altered: %v", i, err)
		}
		if _, err := r.Open(sealed[:i], "row 1"); !errors.Is(err, secret.ErrOpen) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	if _, err := secret.NewKeyring(nil, "rows"); !errors.Is(err, secret.ErrKey) {
		t.Errorf("no keys: %v", err)
	}
}

func TestKeyring_RotatesWithoutAGap(t *testing.T) {
	t.Parallel()
	first, second := key(t, 1), key(t, 2)
	before := keyring(t, "rows", first)
	during := keyring(t, "rows", second, first)
	after := keyring(t, "rows", second)
	old := before.Seal([]byte("old"), "row")
	fresh := during.Seal([]byte("new"), "row")
	if got, err := during.Open(old, "row"); err != nil || string(got) != "old" {
		t.Errorf("the old key no longer opens: %q, %v", got, err)
	}
	if got, err := after.Open(fresh, "row"); err != nil || string(got) != "new" {
		t.Errorf("the new key did not seal: %q, %v", got, err)
	}
	if _, err := after.Open(old, "row"); !errors.Is(err, secret.ErrOpen) {
		t.Errorf("a dropped key still opens: %v", err)
	}
}

func TestMAC_RotatesAndSeparatesPurposes(t *testing.T) {
	t.Parallel()
	mac := func(purpose string, keys ...secret.Key) *secret.MAC {
		m, err := secret.NewMAC(keys, purpose)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first, second := key(t, 1), key(t, 2)
	tag := mac("refresh", first).Sum([]byte("prefix"), []byte("message"))
	if !bytes.HasPrefix(tag, []byte("prefix")) || len(tag) != len("prefix")+32 {
		t.Fatalf("tag is %d bytes", len(tag))
	}
	tag = tag[len("prefix"):]
	if !mac("refresh", second, first).Verify(tag, []byte("message")) {
		t.Error("the older key no longer verifies")
	}
	for name, ok := range map[string]bool{
		"dropped key":     mac("refresh", second).Verify(tag, []byte("message")),
		"another purpose": mac("cookie", first).Verify(tag, []byte("message")),
		"another message": mac("refresh", first).Verify(tag, []byte("massage")),
		"a cut tag":       mac("refresh", first).Verify(tag[:31], []byte("message")),
		"an empty tag":    mac("refresh", first).Verify(nil, []byte("message")),
	} {
		if ok {
			t.Errorf("%s verifies", name)
		}
	}
	if _, err := secret.NewMAC(nil, "refresh"); !errors.Is(err, secret.ErrKey) {
		t.Errorf("no keys: %v", err)
	}
}

func TestMAC_IsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	m, err := secret.NewMAC([]secret.Key{key(t, 1), key(t, 2)}, "x")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			message := []byte{byte(i)}
			for range 200 {
				if !m.Verify(m.Sum(nil, message), message) {
					t.Error("does not verify")
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestEqualAndHash(t *testing.T) {
	t.Parallel()
	if !secret.Equal([]byte("a"), []byte("a")) || secret.Equal([]byte("a"), []byte("b")) || secret.Equal([]byte("a"), []byte("aa")) {
		t.Error("comparison is wrong")
	}
	if h := secret.Hash("handle"); len(h) != 32 || !bytes.Equal(h, secret.Hash("handle")) || bytes.Equal(h, secret.Hash("handel")) {
		t.Error("hash is wrong")
	}
}

func BenchmarkMAC(b *testing.B) {
	k, err := secret.ParseKey(text(1))
	if err != nil {
		b.Fatal(err)
	}
	m, err := secret.NewMAC([]secret.Key{k}, "x")
	if err != nil {
		b.Fatal(err)
	}
	message := make([]byte, 36)
	b.ReportAllocs()
	for b.Loop() {
		m.Sum(nil, message)
	}
}
