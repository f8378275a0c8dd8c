package apply

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"versola/modules/central/change"
)

// shownValue bounds a value in a difference: enough for any URI.
const shownValue = 300

// Format writes changes for people: a line for each entity that differs, and
// for each member what was ("-") and what is ("+"). Secrets are not shown.
func Format(w io.Writer, changes []Change, dryRun bool) error {
	var b strings.Builder
	counts := map[change.Action]int{}
	for _, c := range changes {
		counts[c.Action]++
		if c.Action == change.Unchanged {
			continue
		}
		name := c.Ref.String()
		if c.Person != "" {
			name = c.Person
		}
		b.WriteString(map[change.Action]string{change.Created: "+ ", change.Updated: "~ ", change.Deleted: "- "}[c.Action] + printable(name) + "\n")
		switch {
		case c.Action == change.Updated:
			differ(&b, "", tree(c.Before), tree(c.After))
		case c.Action == change.Created && c.After != nil && dryRun:
			differ(&b, "", map[string]any{}, declared(tree(c.After)))
		}
	}
	end := ""
	if dryRun {
		end = " (dry run: nothing was changed)"
	}
	fmt.Fprintf(&b, "%d created, %d updated, %d deleted, %d unchanged%s\n", counts[change.Created], counts[change.Updated],
		counts[change.Deleted], counts[change.Unchanged], end)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print changes: %w", err)
	}
	return nil
}

func tree(raw json.RawMessage) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return string(raw)
	}
	return v
}

// declared leaves out of a new entity what its name says already, and what is
// empty.
func declared(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	maps.DeleteFunc(m, func(name string, v any) bool {
		inner, isMap := v.(map[string]any)
		return name == "id" || name == "tenant" || isMap && len(inner) == 0
	})
	return m
}

// differ writes what differs between two JSON values.
func differ(b *strings.Builder, at string, was, is any) {
	if reflect.DeepEqual(was, is) {
		return
	}
	if at == "secrets" {
		fmt.Fprintf(b, "    ~ secrets: %d before, %d after\n", length(was), length(is))
		return
	}
	wasMap, ok1 := was.(map[string]any)
	isMap, ok2 := is.(map[string]any)
	if ok1 && ok2 {
		names := maps.Clone(wasMap)
		maps.Copy(names, isMap)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			differ(b, join(at, name), wasMap[name], isMap[name])
		}
		return
	}
	wasList, ok1 := was.([]any)
	isList, ok2 := is.([]any)
	if ok1 && ok2 {
		differLists(b, at, wasList, isList)
		return
	}
	if was != nil {
		fmt.Fprintf(b, "    - %s: %s\n", printable(at), shown(was))
	}
	if is != nil {
		fmt.Fprintf(b, "    + %s: %s\n", printable(at), shown(is))
	}
}

// differLists tells items apart by their id, or as they are.
func differLists(b *strings.Builder, at string, was, is []any) {
	before, after := byID(was), byID(is)
	changed := false
	for _, v := range was {
		if now, stays := after[nameOf(v)]; !stays {
			changed = true
			fmt.Fprintf(b, "    - %s: %s\n", at, shown(v))
		} else if !reflect.DeepEqual(v, now) {
			changed = true
			differ(b, at+"["+nameOf(v)+"]", v, now)
		}
	}
	for _, v := range is {
		if _, known := before[nameOf(v)]; !known {
			changed = true
			fmt.Fprintf(b, "    + %s: %s\n", at, shown(v))
		}
	}
	if !changed {
		fmt.Fprintf(b, "    ~ %s: in another order\n", at)
	}
}

func byID(list []any) map[string]any {
	out := make(map[string]any, len(list))
	for _, v := range list {
		out[nameOf(v)] = v
	}
	return out
}

func nameOf(v any) string {
	if m, ok := v.(map[string]any); ok {
		if id, ok := m["id"].(string); ok {
			return id
		}
	}
	return shown(v)
}

func length(v any) int {
	list, _ := v.([]any)
	return len(list)
}

func shown(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	text := strings.ToValidUTF8(string(raw[:min(len(raw), shownValue)]), "")
	if len(raw) > shownValue {
		text += "…"
	}
	return printable(text)
}
