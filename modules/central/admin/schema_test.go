package admin_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"versola/modules/central/catalog"
	"versola/modules/central/openapi/openapitest"
	"versola/modules/central/validate"
)

// schemaOf names the document's schema of a kind: that of "authorization_detail_type"
// is AuthorizationDetailType.
func schemaOf(kind string) string {
	var name strings.Builder
	for word := range strings.FieldsFuncSeq(kind, func(r rune) bool { return r == '_' || r == '-' }) {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

func TestDocument_HasTheMembersOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, k := range catalog.Kinds {
		extra := []string{"meta"}
		switch k.Name {
		case catalog.KindNameClient:
			extra = append(extra, "client_secret", "secrets")
		case catalog.KindNameWebhook:
			extra = append(extra, "signing_secret") // shown once
		}
		openapitest.Struct(t, schemaOf(k.Name), reflect.TypeOf(k.New()).Elem(), extra...)
	}
}

const unknownWord = "no-such-word"

var (
	oneOf = regexp.MustCompile(`^"` + unknownWord + `" is unknown: one of \[(.*)\]$`)
	index = regexp.MustCompile(`\[\d+\]`)
)

func TestDocument_HasTheWordsThatValidationAccepts(t *testing.T) {
	t.Parallel()
	for _, k := range catalog.Kinds {
		e := k.New()
		fill(reflect.ValueOf(e).Elem())
		s := &catalog.Snapshot{}
		k.Put(s, e)
		accepted := map[string][]string{}
		for _, p := range (validate.Rules{}).Snapshot(s) {
			if m := oneOf.FindStringSubmatch(p.Message); m != nil {
				accepted[index.ReplaceAllString(p.Field, "")] = strings.Fields(m[1])
			}
		}
		described := openapitest.Enums(t, schemaOf(k.Name))
		for _, words := range []map[string][]string{accepted, described} {
			for field := range words {
				// "code id_token" is one of the words.
				words[field] = strings.Fields(strings.Join(words[field], " "))
				slices.Sort(words[field])
			}
		}
		if d := cmp.Diff(accepted, described); d != "" {
			t.Errorf("%s: validation (-) and document (+) have other words\n%s", k.Name, d)
		}
	}
}

// fill gives every text, and one entry of every list, the unknown word.
func fill(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // what declarations are made of
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		}
	case reflect.String:
		v.SetString(unknownWord)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}
