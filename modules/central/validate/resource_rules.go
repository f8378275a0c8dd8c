package validate

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"versola/modules/central/catalog"
)

// Bounds of rules of resources.
const (
	maxInjections = 20
	maxCA         = 256 << 10 // a bundle of a company's own authorities
	maxRequests   = 1_000_000
	maxPer        = 24 * time.Hour
	maxPreflight  = 24 * time.Hour // browsers keep it for two hours at the most
	maxIdle       = time.Hour
)

// upstream checks what a resource says beyond its address.
func (c *check) upstream(p problems, s *catalog.ResourceSpec) {
	u := &s.Upstream
	if s.URI != "" {
		if _, err := parseURI(s.URI); err != nil {
			p.err("uri", err)
		}
	}
	p.within("upstream.idle_timeout", u.IdleTimeout, minTimeout, maxIdle)
	if u.TLS != nil {
		if !strings.HasPrefix(u.URL, "https:") {
			p.add("upstream.tls", "is for https upstreams")
		}
		if u.TLS.CA != "" {
			p.err("upstream.tls.ca", certificates(u.TLS.CA))
		}
		if u.TLS.ServerName != "" {
			p.err("upstream.tls.server_name", domain(u.TLS.ServerName))
		}
	}
	if a := u.Authentication; a != nil {
		if u.ForwardToken {
			p.add("upstream.authentication", "excludes forward_token: both are the Authorization header")
		}
		c.upstreamClient(p, s.Tenant, a)
	}
	if s.CORS != nil {
		c.cors(p, s.CORS)
	}
	limits(p, "limits", s.Limits)
}

func (c *check) upstreamClient(p problems, tenant string, a *catalog.UpstreamAuthentication) {
	client := c.clients[Ref{Kind: KindClient, Tenant: tenant, ID: a.Client}]
	switch {
	case client == nil:
		p.add("upstream.authentication.client", "there is no client %q in tenant %q", a.Client, tenant)
	case client.Kind != catalog.KindService:
		p.add("upstream.authentication.client", "%q is not a service client", a.Client)
	}
	p.each("upstream.authentication.scopes", a.Scopes, c.known(KindScope, tenant))
}

// certificates checks PEM certificates.
func certificates(s string) error {
	if len(s) > maxCA {
		return fmt.Errorf("has %d bytes, more than %d", len(s), maxCA)
	}
	n := 0
	for rest := []byte(s); ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if strings.TrimSpace(string(rest)) != "" {
				return errors.New("has something else than PEM certificates")
			}
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("has a %s: only certificates belong here", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("certificate %d cannot be read", n+1)
		}
	}
	if n == 0 {
		return errors.New("has no certificate")
	}
	return nil
}

func (c *check) cors(p problems, s *catalog.CORSSpec) {
	if len(s.Origins) == 0 {
		p.add("cors.origins", "is missing")
	}
	p.each("cors.origins", s.Origins, c.Origin)
	p.each("cors.headers", s.Headers, headerName)
	p.each("cors.expose_headers", s.Expose, headerName)
	p.within("cors.max_age", s.MaxAge, time.Second, maxPreflight)
}

func limits(p problems, field string, s *catalog.LimitSpec) {
	if s == nil {
		return
	}
	if s.Requests <= 0 && s.Concurrent <= 0 {
		p.add(field, "limits nothing: requests with per, or concurrent, is needed")
	}
	p.between(field+".requests", s.Requests, 1, maxRequests)
	p.between(field+".burst", s.Burst, 1, maxRequests)
	p.between(field+".concurrent", s.Concurrent, 1, maxRequests)
	p.within(field+".per", s.Per, time.Second, maxPer)
	if (s.Requests != 0) != (s.Per != 0) {
		p.add(field+".per", "requests and per belong together")
	}
}

// endpoint checks the rules of an endpoint; at is its field with a dot.
func (c *check) endpoint(p problems, at string, e *catalog.EndpointSpec) {
	if e.Allow != "" {
		p.err(at+"allow", Rule(e.Allow))
		if e.Public {
			p.add(at+"allow", "a public endpoint has no caller to judge")
		}
	}
	if len(e.Inject) > maxInjections {
		p.add(at+"inject", "has %d entries, more than %d", len(e.Inject), maxInjections)
	} else {
		seen := map[string]bool{}
		for i, in := range e.Inject {
			field := fmt.Sprintf("%sinject[%d].", at, i)
			if err := injectedHeader(in.Header); err != nil {
				p.err(field+"header", err)
			} else if key := strings.ToLower(in.Header); seen[key] {
				p.add(field+"header", "%q is set twice", in.Header)
			} else {
				seen[key] = true
			}
			p.err(field+"value", Value(in.Value))
		}
	}
	if u := e.StepUp; u != nil {
		if e.Public {
			p.add(at+"step_up", "a public endpoint has no sign-in to judge")
		}
		if len(u.ACR) == 0 && u.MaxAge == 0 {
			p.add(at+"step_up", "asks for nothing: acr_values or max_age is needed")
		}
		p.each(at+"step_up.acr_values", u.ACR, acrValue)
		p.within(at+"step_up.max_age", u.MaxAge, time.Second, maxLong)
	}
	if e.Websocket && e.Method != "GET" {
		p.add(at+"websocket", "begins with GET (RFC 6455 section 4.1)")
	}
	limits(p, at+"limits", e.Limits)
	p.between(at+"max_body", e.MaxBody, 1, maxBody)
	p.within(at+"timeout", e.Timeout, minTimeout, maxResponse)
}
