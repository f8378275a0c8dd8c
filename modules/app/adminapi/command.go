package adminapi

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"versola/modules/central/openapi"
)

// Command is an operation as the command line has it.
type Command struct {
	openapi.Operation
	Group string   // "" for what is about the caller
	Name  string   // within the group
	Flags []string // parameters of the path that are flags: what it is within
	Args  []string // parameters of the path that are arguments, in order
}

var pathParameter = regexp.MustCompile(`\{([^}]+)\}`)

// callerTag is the tag of operations about the caller itself.
const callerTag = "caller"

// Commands derives the commands from the OpenAPI document: "list-clients" with
// the tag clients is "clients list", "end-user-sessions" of users is "users
// end-sessions". Errors: two operations that would have one name.
func Commands() ([]Command, error) {
	operations, err := openapi.Operations()
	if err != nil {
		return nil, err
	}
	var out []Command
	seen := map[string]string{}
	for _, op := range operations {
		c := Command{Operation: op, Group: op.Tag, Name: name(op.ID, op.Tag)}
		if op.Tag == callerTag {
			c.Group = ""
		}
		full := strings.TrimSpace(c.Group + " " + c.Name)
		if other, twice := seen[full]; twice {
			return nil, fmt.Errorf("the operations %s and %s are both the command %q", other, op.ID, full)
		}
		seen[full] = op.ID
		for _, m := range pathParameter.FindAllStringSubmatch(op.Path, -1) {
			if strings.HasSuffix(op.Path, m[0]) || m[1] != "tenant" && m[1] != "directory" {
				c.Args = append(c.Args, m[1])
			} else {
				c.Flags = append(c.Flags, m[1])
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// name leaves the group's noun out of an operation's id.
func name(id, group string) string {
	words := "-" + id + "-"
	for _, noun := range []string{group, Singular(group)} {
		if short := strings.Replace(words, "-"+noun+"-", "-", 1); short != words {
			return strings.Trim(short, "-")
		}
	}
	return id
}

// Singular is the name of one of a group.
func Singular(group string) string {
	if stem, ok := strings.CutSuffix(group, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(group, "s")
}

// Paged tells whether the answer has pages.
func (c Command) Paged() bool {
	return slices.ContainsFunc(c.Query, func(p openapi.Parameter) bool { return p.Name == "after" })
}

// Target returns the operation's path with its parameters and query filled in.
func (c Command) Target(parameters map[string]string, query url.Values) string {
	path := pathParameter.ReplaceAllStringFunc(c.Path, func(m string) string {
		return url.PathEscape(parameters[m[1:len(m)-1]])
	})
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}
