// Package validate refuses configuration that run time would refuse, with the
// name of the field, before it is stored.
//
// [Snapshot] looks at a whole configuration as it would be after a change:
// each entity by itself (ids, URIs, durations, combinations that no
// specification allows) and what it refers to. It is a pure function, so that
// the declarative configuration, the admin API and the console refuse the same
// things in the same words. It reports everything it finds, not the first.
//
// Rules worth knowing:
//
//   - an id is lower-case letters, digits, "-", "_" and ".", begins with a
//     letter or digit, and has 64 characters at the most: it is a path segment,
//     a metric label and a JSON key, and is never escaped anywhere. A scope is a
//     scope-token of RFC 6749 section 3.3;
//   - a redirect URI is absolute, without fragment and user information (RFC
//     6749 section 3.1.2), and https, or http on a literal loopback address (RFC
//     8252 section 7.3), or for a native client a private-use scheme with a dot
//     in it (RFC 8252 section 7.1). http://localhost only in development;
//   - a public client has no secret and always uses PKCE (RFC 9700 section
//     2.1.1); a native or single-page client is public (RFC 6749 section 2.1);
//   - no two endpoints of a resource have the same method and shape of path, so
//     that "the most specific endpoint" is one.
package validate
