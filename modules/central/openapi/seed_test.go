package openapi

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the document asks for")

// seeded is the part of the system tenant's configuration that follows from
// the document.
const seeded = "../../../configs/system/administration.yaml"

// permissions are how operations are put together for roles. An operation may
// be in several.
var permissions = []struct {
	id, about string
	has       func(op Operation) bool
}{
	{"use-api", "the start page and who one is", ids("overview", "me", "openapi")},
	{"view-configuration", "every entity and its history", func(op Operation) bool {
		return op.Method == "GET" && !about(op, "users", "audit", "deliveries") && op.ID != "overview" && op.ID != "me" && op.ID != "openapi"
	}},
	{"view-users", "people, where they are signed in, what happened to them", func(op Operation) bool { return op.Method == "GET" && about(op, "users") }},
	{"view-audit", "the audit log, and what webhooks are told of it", func(op Operation) bool { return about(op, "audit") || op.Method == "GET" && about(op, "deliveries") }},
	{"support-users", "help people who cannot sign in", ids("reset-user-password", "create-user-password-reset", "send-user-password-reset", "end-user-sessions", "end-user-session", "remove-user-factor", "reset-user-limits")},
	{"secure", "disable people, replace secrets and keys", ids("update-user", "create-client-secret", "delete-client-secret", "create-webhook-secret", "delete-webhook-secret", "rotate-keys", "retire-key")},
	{"manage-tenant", "what belongs to a tenant, and its people", func(op Operation) bool {
		in := strings.Contains(op.Path, "{tenant}") || about(op, "users")
		return op.Method != "GET" && in && op.ID != "delete-tenant"
	}},
	{"manage-deployment", "tenants, edges, user directories and keys", func(op Operation) bool {
		return op.Method != "GET" && !strings.Contains(op.Path, "{tenant}/") && !about(op, "users")
	}},
}

var roles = []struct{ id, permissions string }{
	{"admin", "use-api, view-configuration, view-users, view-audit, support-users, secure, manage-tenant, manage-deployment"},
	{"security", "use-api, view-configuration, view-users, view-audit, support-users, secure"},
	{"support", "use-api, view-configuration, view-users, support-users"},
	{"auditor", "use-api, view-configuration, view-users, view-audit"},
	{"viewer", "use-api, view-configuration"},
}

func ids(list ...string) func(Operation) bool {
	return func(op Operation) bool {
		for _, id := range list {
			if op.ID == id {
				return true
			}
		}
		return false
	}
}

// about tells whether an operation's path leads to things of these names.
func about(op Operation, names ...string) bool {
	for _, n := range names {
		for _, segment := range strings.Split(op.Path, "/") {
			if segment == n || strings.HasPrefix(segment, n+":") {
				return true
			}
		}
	}
	return false
}

func TestSeed_FollowsFromTheDocument(t *testing.T) {
	t.Parallel()
	operations, err := Operations()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString(`# The administration API behind the edge, like any other API: an endpoint for
# each operation of modules/central/openapi/openapi.yaml, the permissions that
# put them together, and the roles of the system tenant. Generated from that
# document (go test ./modules/central/openapi -update) and loaded once; after
# that it is the operator's to edit.
kind: resource
tenant: system
id: central
name: Administration
audience: central
upstream:
  url: ${CENTRAL_URL}
  connect_timeout: 2s
  response_timeout: 30s
  forward_token: true
endpoints:
`)
	for _, op := range operations {
		fmt.Fprintf(&b, "  - {id: %s, method: %s, path: %q", op.ID, op.Method, op.Path)
		if op.Public {
			b.WriteString(", public: true")
		}
		b.WriteString("}\n")
	}
	held := map[string]bool{}
	for _, p := range permissions {
		fmt.Fprintf(&b, "---\n# %s%s\nkind: permission\ntenant: system\nid: %s\nendpoints:\n", strings.ToUpper(p.about[:1]), p.about[1:], p.id)
		for _, op := range operations {
			if p.has(op) {
				held[op.ID] = true
				fmt.Fprintf(&b, "  - central:%s\n", op.ID)
			}
		}
	}
	for _, r := range roles {
		fmt.Fprintf(&b, "---\nkind: role\ntenant: system\nid: %s\npermissions: [%s]\n", r.id, r.permissions)
	}
	for _, op := range operations {
		if !held[op.ID] {
			t.Errorf("no permission reaches %s", op.ID)
		}
	}
	if *update {
		if err := os.WriteFile(seeded, b.Bytes(), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(seeded)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, b.Bytes()) {
		t.Errorf("%s is not what follows from openapi.yaml: run this test with -update", seeded)
	}
}
