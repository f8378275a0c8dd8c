// Package policy decides whether a call may pass. It does no I/O: what it
// needs is handed to it, and one request has one answer.
//
// Its steps:
//
//	request target ──[Canonical]──> Target ──[Table.Match]──> endpoint
//	endpoint + Caller ──[May]──> Reason
//	Rules + what is known of the call ──[Satisfied]──> Reason
//	endpoint + Caller ──[Recent]──> Reason
//
// Canonical makes the one spelling of a path that is matched, logged and
// forwarded. What two parsers could read in two ways is not normalised but
// refused: encoded separators, dot segments in any spelling, double
// encodings, empty segments, backslashes, ";" parameters, control characters,
// malformed escapes and malformed UTF-8.
//
// Match finds the most specific endpoint: segment by segment a literal beats
// {param}, which beats {rest...}; HEAD falls back to GET. Tables are compiled
// once per catalog.
//
// May denies by default. An endpoint passes when it is public, when a role of
// the caller reaches it in the tenant that owns the resource, or when the
// calling service client holds a permission that does; the token's audience
// must cover the resource (RFC 9068 section 4). Satisfied asks the endpoint's
// expressions besides (catalog/rules); what cannot be evaluated denies. Recent
// asks for a sign-in of the age that the endpoint wants. Every refusal is a [Reason]
// from a closed set, which is in the log, in the metric and in the answer.
package policy
