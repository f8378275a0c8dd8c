package app

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/platform/secret"
)

// maxEdgeKeys bounds a key set: the keys of two rotations that overlap.
const maxEdgeKeys = 8

// errEdgeKeys shows nothing of the file: it holds private keys.
var errEdgeKeys = errors.New("not a JSON Web Key Set of an edge's private keys")

// RotateEdgeKeys returns a key set with new keys before those of an existing
// one: the edge authenticates with the first key of use "sig", and opens what
// was encrypted to any key of use "enc".
func RotateEdgeKeys(private secret.Text) (json.RawMessage, error) {
	fresh, err := GenerateEdgeKeys()
	if err != nil {
		return nil, err
	}
	old, err := edgeKeys(private)
	if err != nil {
		return nil, err
	}
	set, err := jwk.Parse(fresh)
	if err != nil {
		return nil, fmt.Errorf("read new edge keys: %w", err)
	}
	if set.Len()+old.Len() > maxEdgeKeys {
		return nil, fmt.Errorf("the set has %d keys already: end the rotation before with \"versola edge prune\"", old.Len())
	}
	for i := range old.Len() {
		k, _ := old.Key(i)
		if err := set.AddKey(k); err != nil {
			return nil, fmt.Errorf("add key: %w", err)
		}
	}
	return encodeKeys(set)
}

// PruneEdgeKeys keeps the first key of each use: what ends a rotation.
func PruneEdgeKeys(private secret.Text) (json.RawMessage, error) {
	all, err := edgeKeys(private)
	if err != nil {
		return nil, err
	}
	set, kept := jwk.NewSet(), map[string]bool{}
	for i := range all.Len() {
		k, _ := all.Key(i)
		if kept[k.KeyUsage()] {
			continue
		}
		kept[k.KeyUsage()] = true
		if err := set.AddKey(k); err != nil {
			return nil, fmt.Errorf("add key: %w", err)
		}
	}
	return encodeKeys(set)
}

func edgeKeys(private secret.Text) (jwk.Set, error) {
	set, err := jwk.ParseString(private.Reveal())
	if err != nil || set.Len() == 0 {
		return nil, errEdgeKeys
	}
	for i := range set.Len() {
		k, _ := set.Key(i)
		if is, err := jwk.IsPrivateKey(k); err != nil || !is || k.KeyUsage() != "sig" && k.KeyUsage() != "enc" {
			return nil, errEdgeKeys
		}
	}
	return set, nil
}

func encodeKeys(set jwk.Set) (json.RawMessage, error) {
	raw, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("encode edge keys: %w", err)
	}
	return raw, nil
}
