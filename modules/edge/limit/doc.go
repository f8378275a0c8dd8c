// Package limit bounds what one caller may ask of a resource: how many calls in
// a time, by a token bucket, and how many at once.
//
// The state is in the memory of the process. Behind n edges a caller has at
// the most n times the limit, and a restart forgets: it guards an upstream from
// one caller's flood and is no accounting. A bucket that is full again says
// nothing and is dropped, so memory follows the callers of the last moments;
// over a bound, some are forgotten early, in the callers' favour.
package limit
