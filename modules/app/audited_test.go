package app

import (
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"versola/modules/central/audit"
)

// logged reads what is newer than an entry as "action kind/tenant/id by
// actor's kind", sorted, and the newest entry's number.
func logged(t *testing.T, log *audit.Log, after int64) (lines []string, bodies string, newest int64) {
	t.Helper()
	page, err := log.Page(t.Context(), audit.Filter{}, 0, 200)
	if err != nil {
		t.Fatal(err)
	}
	newest = after
	lines = []string{}
	for _, e := range page {
		newest = max(newest, e.Seq)
		if e.Seq <= after {
			continue
		}
		var said audit.Entry
		if err := json.Unmarshal(e.Body, &said); err != nil {
			t.Fatal(err)
		}
		line := said.Action
		if said.Object != nil && said.Object.Kind != "signing_key" {
			line += " " + said.Object.Tenant + "/" + said.Object.ID
		}
		if said.Actor.ID == "" {
			t.Errorf("nobody did %s", line)
		}
		lines, bodies = append(lines, line+" by "+said.Actor.Kind), bodies+string(e.Body)
	}
	slices.Sort(lines)
	return lines, bodies, newest
}

func TestAudit_EveryCommandThatChangesOrTellsIsInTheLog(t *testing.T) {
	deployed(t)
	dir := t.TempDir()
	edgeKeys := func(name string) string {
		t.Helper()
		out, errs, code := operate(t, "", "edge", "keygen", "--out", filepath.Join(dir, name))
		if code != 0 {
			t.Fatal(out, errs)
		}
		public, errs, code := operate(t, "", "edge", "public", filepath.Join(dir, name))
		if code != 0 {
			t.Fatal(errs)
		}
		return strings.ReplaceAll(strings.TrimSpace(public), "\n", " ")
	}
	edge := func(keys string) string { return "kind: edge\nid: local\njwks: " + keys + "\n---\n" }
	const (
		tenant = "kind: tenant\nid: shop\nname: Shop\nsecurity_profile: standard\n---\nkind: scope\ntenant: shop\nid: openid\n---\n"
		client = "kind: client\ntenant: shop\nid: app\nclient_kind: service\nauth_method: client_secret_basic\ngrant_types: [client_credentials]\n"
		first  = "first-secret-of-the-shop"
		second = "second-secret-of-the-shop"
	)
	one, two := edge(edgeKeys("one")), edge(edgeKeys("two"))
	d, err := openDeployment(t.Context(), "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.close() })
	log := d.audit
	var seq int64
	for _, step := range []struct {
		name, stdin, args string
		code              int
		want              []string
	}{
		{"a dry run", one + tenant + client + "secret: " + first, "apply -f - --dry-run", 0, []string{}},
		{"what is refused", "kind: tenant\nid: SHOP\n", "apply -f -", 1, []string{}},
		{"entities", one + tenant + client + "secret: " + first, "apply -f -", 0,
			[]string{"client.created shop/app", "edge.created /local", "scope.created shop/openid", "tenant.created /shop"}},
		{"the same again", one + tenant + client + "secret: " + first, "apply -f -", 0, []string{}},
		{"another secret", client + "secrets: [" + second + ", " + first + "]", "apply -f -", 0, []string{"client.updated shop/app"}},
		{"other keys of an edge", two, "apply -f -", 0, []string{"edge.updated /local"}},
		{"an export", "", "export", 0, []string{"configuration.exported"}},
		{"an export of a tenant with secrets", "", "export --secrets --tenant shop", 0, []string{"secrets.exported"}},
		{"an export of nobody's", "", "export --tenant none", 2, []string{}},
		{"a deletion", tenant, "apply -f - --prune", 0, []string{"client.deleted shop/app"}},
		{"a new key", "", "keys rotate --now --alg ES256", 0, []string{"signing_key.activated", "signing_key.published"}},
		{"an audit export", "", "audit export", 0, []string{"audit.exported"}},
		{"a proof", "", "audit verify", 0, []string{}},
	} {
		out, errs, code := operate(t, step.stdin, strings.Fields(step.args)...)
		if code != step.code {
			t.Errorf("%s: %d %s%s", step.name, code, out, errs)
		}
		lines, bodies, newest := logged(t, log, seq)
		seq = newest
		for i := range step.want {
			step.want[i] += " by command"
		}
		if diff := cmp.Diff(step.want, lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if strings.Contains(bodies, first) || strings.Contains(bodies, second) || strings.Contains(bodies, `"d":`) {
			t.Errorf("%s: the log has a secret: %s", step.name, bodies)
		}
	}
	list, _, _ := operate(t, "", "keys", "list", "--json")
	var keys []struct{ ID string }
	if err := json.Unmarshal([]byte(list), &keys); err != nil || len(keys) != 1 {
		t.Fatalf("%v %s", err, list)
	}
	if _, errs, code := operate(t, "", "keys", "retire", keys[0].ID); code != 0 {
		t.Error(errs)
	}
	if lines, _, _ := logged(t, log, seq); !slices.Contains(lines, "signing_key.removed by command") {
		t.Errorf("retired: %v", lines)
	}
}
