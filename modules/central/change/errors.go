package change

import (
	"errors"
	"fmt"
	"strings"

	"versola/modules/central/catalog"
	"versola/modules/central/validate"
)

// Errors of the operations, wrapped with the entity's name.
var (
	// ErrConflict: the entity has another version than the operation expects.
	ErrConflict = errors.New("was changed by someone else")
	// ErrExists: an entity of that id is there.
	ErrExists = errors.New("exists already")
	// ErrNotFound: there is no such entity, or no such secret.
	ErrNotFound = errors.New("does not exist")
)

// Use is one reference to an entity.
type Use struct {
	By    catalog.Ref
	Field string // as in a document
}

// InUse reports the deletion of an entity that others refer to.
type InUse struct {
	Ref catalog.Ref
	By  []Use
}

// shownUses bounds the message; [InUse.By] has all.
const shownUses = 5

// Error names the first users.
func (e *InUse) Error() string {
	names := make([]string, 0, shownUses)
	for _, u := range e.By[:min(len(e.By), shownUses)] {
		names = append(names, u.By.String())
	}
	if more := len(e.By) - shownUses; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return e.Ref.String() + " is used by " + strings.Join(names, ", ")
}

// Invalid reports a configuration that validation refuses. It has every
// problem of what was put, and of other entities those that the change makes.
type Invalid struct{ Problems []validate.Problem }

// Error has one line for each problem.
func (e *Invalid) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
