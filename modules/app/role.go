package app

import (
	"fmt"
	"slices"
	"strings"
)

// roles says which modules a process runs.
type roles struct{ auth, edge, central bool }

// RoleNames lists what a role may be, for help and errors.
const RoleNames = "auth, edge, central, all"

// parseRoles reads a role or a comma list of roles. auth brings central along
// unless the configuration turns that off.
func parseRoles(text string, authRunsCentral bool) (roles, error) {
	var r roles
	for name := range strings.SplitSeq(text, ",") {
		switch strings.TrimSpace(name) {
		case "auth":
			r.auth = true
			r.central = r.central || authRunsCentral
		case "edge":
			r.edge = true
		case "central":
			r.central = true
		case "all":
			r = roles{true, true, true}
		case "":
			return roles{}, fmt.Errorf("no role given: one of %s, by --role, the configuration key role, or VERSOLA_ROLE", RoleNames)
		default:
			return roles{}, fmt.Errorf("unknown role %q: one of %s, or a comma list", strings.TrimSpace(name), RoleNames)
		}
	}
	return r, nil
}

// String names the roles for the log.
func (r roles) String() string {
	var names []string
	for name, on := range map[string]bool{"auth": r.auth, "central": r.central, "edge": r.edge} {
		if on {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "+")
}

// usesDatabase tells whether the process opens the database of auth and
// central.
func (r roles) usesDatabase() bool { return r.auth || r.central }
