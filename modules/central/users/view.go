package users

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"versola/modules/auth/user"
	"versola/modules/central/admin/document"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/platform/id"
)

// view is a person as the API shows them.
type view struct {
	ID            id.UUID             `json:"id"`
	Directory     string              `json:"directory"`
	ExternalID    string              `json:"external_id,omitempty"`
	Status        user.Status         `json:"status"`
	Phone         string              `json:"phone,omitempty"`
	PhoneVerified bool                `json:"phone_verified,omitempty"`
	Email         string              `json:"email,omitempty"`
	EmailVerified bool                `json:"email_verified,omitempty"`
	Username      string              `json:"username,omitempty"`
	Claims        map[string]any      `json:"claims"`
	Roles         map[string][]string `json:"roles"` // tenant -> roles
	Meta          meta                `json:"meta"`
}

type meta struct {
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

func viewOf(u *user.User) view {
	v := view{ID: u.ID, Directory: u.Directory, ExternalID: u.ExternalID, Status: u.Status, Phone: u.Phone, PhoneVerified: u.PhoneVerified,
		Email: u.Email, EmailVerified: u.EmailVerified, Username: u.Username, Claims: u.Claims, Roles: u.Roles,
		Meta: meta{u.Version, u.CreatedAt.UTC(), u.UpdatedAt.UTC()}}
	if v.Claims == nil {
		v.Claims = map[string]any{}
	}
	if v.Roles == nil {
		v.Roles = map[string][]string{}
	}
	return v
}

// person is what a request says of a person. What the server sets may stand
// there, as an answer has it, and is ignored.
type person struct {
	user.Document
	Directory string          `json:"directory,omitempty"`
	Meta      json.RawMessage `json:"meta,omitempty"`
}

// creation is the document of a person who is created.
type creation struct {
	person
	// Password is hashed here; a person has this or a password_hash.
	Password string `json:"password,omitempty"`
}

// apply writes a checked description onto a person.
func apply(u *user.User, n user.New) {
	u.Status = user.Active
	if n.Disabled {
		u.Status = user.Disabled
	}
	u.ExternalID, u.Phone, u.PhoneVerified, u.Email, u.EmailVerified = n.ExternalID, n.Phone, n.PhoneVerified, n.Email, n.EmailVerified
	u.Username, u.Claims, u.Roles = n.Username, n.Claims, n.Roles
}

// checkRoles returns what is wrong with roles that the person does not have
// yet: each must exist in a tenant of the directory. One that the person has
// may have been deleted since, and stays until it is taken away.
func checkRoles(cat *catalog.Catalog, directory string, was, is map[string][]string) []user.Problem {
	var out []user.Problem
	for _, name := range slices.Sorted(maps.Keys(is)) {
		t, ok := cat.Tenant(name)
		for i, role := range is[name] {
			if slices.Contains(was[name], role) {
				continue
			}
			pointer := document.Join(document.Join("/roles", name), strconv.Itoa(i))
			switch {
			case !ok || t.Directory != directory:
				out = append(out, user.Problem{Pointer: pointer, Detail: "there is no such tenant with this user directory"})
			case !t.HasRole(role):
				out = append(out, user.Problem{Pointer: pointer, Detail: "there is no such role in the tenant"})
			}
		}
	}
	return out
}

// differences are what changed in a person, for the audit log: identifiers
// masked, claims by their names alone.
func differences(was, is *user.User) []audit.FieldChange {
	var out []audit.FieldChange
	add := func(pointer string, before, after any, differs bool) {
		if differs {
			out = append(out, audit.FieldChange{Pointer: pointer, Before: before, After: after})
		}
	}
	masked := func(kind user.Kind, value string) any {
		if value == "" {
			return nil
		}
		return user.Identifier{Kind: kind, Value: value}.Masked()
	}
	add("/status", was.Status, is.Status, was.Status != is.Status)
	add("/external_id", was.ExternalID, is.ExternalID, was.ExternalID != is.ExternalID)
	add("/phone", masked(user.KindPhone, was.Phone), masked(user.KindPhone, is.Phone), was.Phone != is.Phone)
	add("/phone_verified", was.PhoneVerified, is.PhoneVerified, was.PhoneVerified != is.PhoneVerified)
	add("/email", masked(user.KindEmail, was.Email), masked(user.KindEmail, is.Email), was.Email != is.Email)
	add("/email_verified", was.EmailVerified, is.EmailVerified, was.EmailVerified != is.EmailVerified)
	add("/username", masked(user.KindUsername, was.Username), masked(user.KindUsername, is.Username), was.Username != is.Username)
	for _, name := range both(was.Claims, is.Claims) {
		before, had := was.Claims[name]
		after, has := is.Claims[name]
		add(document.Join("/claims", name), nil, nil, had != has || !same(before, after))
	}
	for _, tenant := range both(was.Roles, is.Roles) {
		add(document.Join("/roles", tenant), was.Roles[tenant], is.Roles[tenant], !slices.Equal(was.Roles[tenant], is.Roles[tenant]))
	}
	return out
}

// same compares values by what they are as JSON: a number has several forms in
// memory.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func both[V any](a, b map[string]V) []string {
	names := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(names)
	return slices.Compact(names)
}
