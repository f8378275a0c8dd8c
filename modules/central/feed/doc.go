// Package feed sends each edge its part of the configuration.
//
//	GET /internal/catalog
//	Authorization: Bearer <the edge's token, see package edgeauth>
//	If-None-Match: <the ETag of the answer before>
//
// answers 200 with a [catalog.Snapshot] and its ETag as soon as there is
// another than the one named, else 304 after 25 seconds. The ETag is made of the
// revision, its token and what the process's configuration adds (issuer, root
// tenant). An edge that also sends
//
//	A-IM: versola-catalog-delta
//
// is answered 226 with a [catalog.Delta] where the one named is among the last
// revisions of this process (RFC 3229 section 10); else 200 with all.
//
// Invariants:
//
//   - an edge is sent the tenants assigned to it, and of no other tenant even a
//     name. The revision is the deployment's, so an edge can tell that something
//     changed elsewhere, not what;
//   - signing keys are sent without their private part;
//   - a client's secrets are sent only for clients of the edge's own presets,
//     each encrypted to the edge's encryption keys (JWE, RFC 7516: ECDH-ES+A256KW,
//     A256GCM) together with what it belongs to, so that one moved to another
//     client does not open. With several encryption keys there is one entry for
//     each, since a compact JWE has one recipient;
//   - a difference leads to what all would be (TestDelta_EndsWhereTheWholeEnds);
//   - an edge's snapshot or difference is made once per revision, however many of its
//     processes ask.
package feed
