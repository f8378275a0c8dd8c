package policy

import (
	"net/http"
	"strings"

	"versola/modules/central/catalog"
)

// Table matches paths against the endpoints of every resource of one catalog.
// It is immutable.
type Table struct {
	roots map[*catalog.Resource]*node
}

// node is a segment position of the templates of one resource.
type node struct {
	literals map[string]*node
	param    *node
	ends     map[string]*catalog.EndpointSpec // endpoints whose template ends here, by method
	rests    map[string]*catalog.EndpointSpec // endpoints with {rest...} here, by method
}

// Compile builds the table of a catalog. A template that cannot be read
// matches nothing; refused names those, as "resource:endpoint".
func Compile(c *catalog.Catalog) (t *Table, refused []string) {
	t = &Table{roots: map[*catalog.Resource]*node{}}
	for _, tenant := range c.Tenants() {
		for _, r := range tenant.Resources() {
			root := &node{}
			for i := range r.Endpoints {
				if !root.insert(&r.Endpoints[i]) {
					refused = append(refused, tenant.ID+"/"+r.ID+":"+r.Endpoints[i].ID)
				}
			}
			t.roots[r] = root
		}
	}
	return t, refused
}

// insert adds an endpoint's template. Of two of one shape and method the first
// stays.
func (n *node) insert(e *catalog.EndpointSpec) bool {
	segments, ok := templateSegments(e.Path)
	if !ok || e.Method == "" {
		return false
	}
	at := n
	for i, s := range segments {
		switch {
		case !strings.ContainsAny(s, "{}"):
			_, reason := checkSegment(s)
			decoded := s
			if reason == Allowed {
				decoded, _, reason = rewriteSegment(s)
			}
			if reason != Allowed || decoded == "." || decoded == ".." || decoded == "" && i < len(segments)-1 {
				return false
			}
			if at.literals == nil {
				at.literals = map[string]*node{}
			}
			if at.literals[decoded] == nil {
				at.literals[decoded] = &node{}
			}
			at = at.literals[decoded]
		case i == len(segments)-1 && strings.HasSuffix(s, "...}") && parameter(s, "...}"):
			put(&at.rests, e)
			return true
		case parameter(s, "}"):
			if at.param == nil {
				at.param = &node{}
			}
			at = at.param
		default:
			return false
		}
	}
	put(&at.ends, e)
	return true
}

func put(m *map[string]*catalog.EndpointSpec, e *catalog.EndpointSpec) {
	if *m == nil {
		*m = map[string]*catalog.EndpointSpec{}
	}
	method := strings.ToUpper(e.Method)
	if _, taken := (*m)[method]; !taken {
		(*m)[method] = e
	}
}

func templateSegments(path string) ([]string, bool) {
	switch {
	case path == "" || path[0] != '/':
		return nil, false
	}
	return strings.Split(path[1:], "/"), true
}

// parameter tells whether a segment is "{name" and then end.
func parameter(s, end string) bool {
	name, ok := strings.CutPrefix(s, "{")
	if !ok {
		return false
	}
	name, ok = strings.CutSuffix(name, end)
	return ok && name != "" && !strings.ContainsAny(name, "{}.")
}

// Match returns the most specific endpoint of a resource for a method and a
// path, or nil. A HEAD without an endpoint of its own is answered by GET's.
func (t *Table) Match(r *catalog.Resource, method string, target Target) *catalog.EndpointSpec {
	root := t.roots[r]
	if root == nil {
		return nil
	}
	segments := target.Segments
	if len(segments) == 0 {
		segments = []string{""} // "/" is the empty segment after the slash
	}
	if e := root.find(method, segments); e != nil || method != http.MethodHead {
		return e
	}
	return root.find(http.MethodGet, segments)
}

// Methods returns the methods by which some endpoint of a resource is reached
// on a path, in the order of their names.
func (t *Table) Methods(r *catalog.Resource, target Target) []string {
	var out []string
	for _, m := range []string{
		http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPatch, http.MethodPost, http.MethodPut,
	} {
		if t.Match(r, m, target) != nil {
			out = append(out, m)
		}
	}
	return out
}

// find walks the template tree. Every node is visited at most once, whatever
// the path, so a hostile path costs no more than the resource has templates.
func (n *node) find(method string, segments []string) *catalog.EndpointSpec {
	if len(segments) == 0 {
		return n.ends[method]
	}
	if next, ok := n.literals[segments[0]]; ok {
		if e := next.find(method, segments[1:]); e != nil {
			return e
		}
	}
	if n.param != nil && segments[0] != "" {
		if e := n.param.find(method, segments[1:]); e != nil {
			return e
		}
	}
	return n.rests[method]
}
