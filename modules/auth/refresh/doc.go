// Package refresh is the refresh token grant: families of tokens that rotate.
//
// A refresh token needs no lookup by hash. It is
//
//	base64url( user id (16) || grant id (16) || generation (4, big endian) || MAC (32) )
//
// and its row is auth.grants, found by primary key. A forged or altered token
// is refused by its MAC, before any use of the database; the database alone
// cannot make one, since the key is not in it. A generation's token is always
// the same bytes, so "the same successor again" needs no memory.
//
// With the row at generation G, a token of generation g is
//
//	g >= G                                   rotated: the row moves to g+1, and g+1 is given
//	g == G-1 or G-2, superseded within grace a lost response: its successor g+1 again
//	older, but G-1 is younger than grace     refused; a burst, not told from theft
//	anything else                            reuse: the whole family is revoked
//
// g > G happens only when a crash of the database lost a rotation: the MAC
// proves that we issued that generation. That is why a rotation may commit
// without waiting for the disk, and why the revocation of a family never does.
//
// One statement does it all, by one conditional UPDATE of columns that no index
// holds (a heap-only update). An update that loses a race reads the row as it
// was before; the statement is then run again. Of many parallel uses of one
// token one rotates and the others get the same successor: one family, nobody
// signed out.
//
// Conditions: the client and the tenant of the grant (another's use changes
// nothing), a person who may sign in, a session that has not ended (but for
// offline access), idle and absolute lifetime, and the key or certificate that
// a public client's family is bound to. A narrower scope counts for one
// access token; a wider one is refused, and the token stays usable. No ID token
// is made: OpenID Connect Core section 12.2 leaves that open, and a signature
// is most of what a refresh costs.
//
// Implements RFC 6749 section 6, RFC 9700 section 4.14, RFC 9449 section 5 and
// RFC 8705 section 4 (public clients).
package refresh
