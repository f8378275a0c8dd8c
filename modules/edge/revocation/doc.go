// Package revocation keeps what auth has revoked in memory, for a check on
// every proxied call: sessions, grants, single tokens, and users (whatever was
// issued to them before a moment).
//
// [Follower] long-polls auth's feed, a log numbered by a sequence. Numbers are
// given when a transaction begins to write and show when it commits, so a
// number can appear late; those that are missing below the highest known are
// asked for by name (gaps) for longer than any transaction lasts. After a
// failed poll everything unexpired is fetched again. Entries are kept until
// they expire, by when every token they speak of has expired too.
//
// While the feed cannot be reached, what is known stays in force and access
// tokens live on to their own expiry, minutes away; the feed's age is a metric.
package revocation
