package client

import (
	"encoding/base64"
	"net/url"
	"testing"
)

func FuzzParseBasic(f *testing.F) {
	f.Add("Basic " + base64.StdEncoding.EncodeToString([]byte("id:secret")))
	f.Add("basic Og==")
	f.Add("Basic %%%")
	f.Add("Basic " + base64.StdEncoding.EncodeToString([]byte("a%3Ab:c+d")))
	f.Fuzz(func(t *testing.T, header string) {
		user, password, err := ParseBasic(header)
		if err != nil {
			if user != "" || password != "" {
				t.Error("a refused header gave something")
			}
			return
		}
		if user == "" {
			t.Error("an empty client id was accepted")
		}
		again := "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(user)+":"+url.QueryEscape(password)))
		u, p, err := ParseBasic(again)
		if len(again) <= maxBasic && (err != nil || u != user || p != password) {
			t.Errorf("%q does not survive being written again", header)
		}
	})
}

func TestParseBasic_FormDecodesBothParts(t *testing.T) {
	t.Parallel()
	u, p, err := ParseBasic("Basic " + base64.StdEncoding.EncodeToString([]byte("a%3Ab:c+d%25:e")))
	if err != nil || u != "a:b" || p != "c d%:e" {
		t.Errorf("%q %q %v", u, p, err)
	}
}
