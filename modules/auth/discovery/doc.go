// Package discovery publishes what the provider does: OpenID Provider Metadata
// (OpenID Connect Discovery section 3) and Authorization Server Metadata (RFC
// 8414 section 2), one document at both addresses.
//
// Invariant: the document is generated from what is configured and enabled.
// Nothing is advertised that does not work, and nothing that works is left out.
// Addresses come from the configured issuer, never from the request.
package discovery
