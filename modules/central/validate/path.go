package validate

import (
	"errors"
	"fmt"
	"strings"

	"versola/modules/central/catalog"
)

// Methods that an endpoint may have.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// Bounds of resources.
const (
	maxEndpoints = 1000 // matched in memory; the largest public APIs have fewer
	maxSegments  = 32
	maxBody      = 10 << 30 // 10 GiB: more is a mistake in the unit
)

// PathTemplate checks an endpoint's path: literal segments, {name} segments,
// and a last {name...}.
func PathTemplate(s string) error {
	if !strings.HasPrefix(s, "/") {
		return errors.New("does not begin with '/'")
	}
	if len(s) > maxURI {
		return fmt.Errorf("has %d characters, more than %d", len(s), maxURI)
	}
	if s == "/" {
		return nil
	}
	segments := strings.Split(s[1:], "/")
	if len(segments) > maxSegments {
		return fmt.Errorf("has more than %d segments", maxSegments)
	}
	names := map[string]bool{}
	for i, segment := range segments {
		name, isParameter := parameter(segment)
		switch {
		case segment == "":
			return errors.New("has an empty segment")
		case segment == "." || segment == "..":
			return errors.New("has a dot segment")
		case !isParameter:
			if err := literal(segment); err != nil {
				return err
			}
			continue
		case strings.HasSuffix(name, "...") && i != len(segments)-1:
			return fmt.Errorf("has %s before the last segment", segment)
		}
		name = strings.TrimSuffix(name, "...")
		if ID(name) != nil || strings.ContainsAny(name, "-.") {
			return fmt.Errorf("has the parameter %q: lower-case letters, digits and '_' are needed", segment)
		}
		if names[name] {
			return fmt.Errorf("has the parameter {%s} twice", name)
		}
		names[name] = true
	}
	return nil
}

func parameter(segment string) (name string, ok bool) {
	if strings.HasPrefix(segment, "{") && strings.HasSuffix(segment, "}") {
		return segment[1 : len(segment)-1], true
	}
	return "", false
}

// literal refuses characters that a canonical request path never has as they
// are, so that no endpoint is declared that nothing can reach.
func literal(segment string) error {
	const extra = "-._~!$&'()*+,=:@"
	for _, c := range segment {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune(extra, c) {
			return fmt.Errorf("has the character %q in a literal segment", c)
		}
	}
	return nil
}

// shape is the template with its parameters' names removed: what decides
// whether two templates match the same paths.
func shape(template string) string {
	segments := strings.Split(template, "/")
	for i, segment := range segments {
		if name, ok := parameter(segment); ok {
			segments[i] = "{}"
			if strings.HasSuffix(name, "...") {
				segments[i] = "{...}"
			}
		}
	}
	return strings.Join(segments, "/")
}

func (c *check) resource(s *catalog.ResourceSpec) {
	p := c.of(KindResource, s.Tenant, s.ID)
	p.err("id", ID(s.ID))
	c.tenantExists(p, s.Tenant)
	p.err("name", Name(s.Name))
	if s.Audience != "" {
		p.err("audience", audience(s.Audience))
	}
	p.err("upstream.url", UpstreamURL(s.Upstream.URL))
	p.within("upstream.connect_timeout", s.Upstream.ConnectTimeout, minTimeout, maxConnect)
	p.within("upstream.response_timeout", s.Upstream.ResponseTimeout, minTimeout, maxResponse)
	if s.Upstream.MaxBody < 0 || s.Upstream.MaxBody > maxBody {
		p.add("upstream.max_body", "is not between 0 and %d bytes", int64(maxBody))
	}
	c.upstream(p, s)
	if len(s.Endpoints) > maxEndpoints {
		p.add("endpoints", "has %d entries, more than %d", len(s.Endpoints), maxEndpoints)
	}
	ids, shapes := map[string]bool{}, map[string]string{}
	for i, e := range s.Endpoints {
		at := fmt.Sprintf("endpoints[%d].", i)
		if err := ID(e.ID); err != nil {
			p.err(at+"id", err)
		} else if ids[e.ID] {
			p.add(at+"id", "%q is there twice", e.ID)
		}
		ids[e.ID] = true
		c.endpoint(p, at, &e)
		p.err(at+"method", oneOf(e.Method, methods...))
		if err := PathTemplate(e.Path); err != nil {
			p.err(at+"path", err)
			continue
		}
		key := e.Method + " " + shape(e.Path)
		if other, ok := shapes[key]; ok {
			p.add(at+"path", "%s %s matches the same requests as endpoint %q", e.Method, e.Path, other)
		}
		shapes[key] = e.ID
	}
	c.unsupported(p, s)
}
