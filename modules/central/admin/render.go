package admin

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/platform/secret"
)

// meta is what is known about an entity beyond its declaration.
type meta struct {
	Version int64     `json:"version"`
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at"`
}

// secretView is a client's secret as the API shows it: without itself.
type secretView struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created_at"`
}

func secretViews(v *change.View, client catalog.Ref) []secretView {
	out := []secretView{}
	for _, s := range v.Secrets(client) {
		out = append(out, secretView{s.ID.String(), s.Created.UTC()})
	}
	return out
}

// render writes an entity as its declaration with "meta" added; a client with
// its secrets' ids; with plain, the secret of a client or webhook that was just
// made.
func render(v *change.View, e change.Entry, plain secret.Text) (json.RawMessage, error) {
	raw, err := json.Marshal(withoutSecrets(e.Spec))
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Spec.Ref(), err)
	}
	extra := struct {
		Secret  string       `json:"client_secret,omitempty"`
		Signing string       `json:"signing_secret,omitempty"`
		Secrets []secretView `json:"secrets,omitempty"`
		Meta    meta         `json:"meta"`
	}{Meta: meta{e.Version, e.Created.UTC(), e.Updated.UTC()}}
	switch e.Spec.Ref().Kind {
	case catalog.KindNameClient:
		extra.Secret, extra.Secrets = plain.Reveal(), secretViews(v, e.Spec.Ref())
	case catalog.KindNameWebhook:
		extra.Signing = plain.Reveal()
	}
	more, err := json.Marshal(extra)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Spec.Ref(), err)
	}
	raw[len(raw)-1] = ','
	return append(raw, more[1:]...), nil
}

func writeEntity(c echo.Context, status int, v *change.View, e change.Entry, plain secret.Text) error {
	raw, err := render(v, e, plain)
	if err != nil {
		return err
	}
	return c.JSONBlob(status, raw)
}
