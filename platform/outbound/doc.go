// Package outbound is the one HTTP client for addresses that somebody else
// chose: a client's logout URL, a key set, a webhook.
//
// Such an address must not reach into the network that Versola runs in (server
// side request forgery). The name is resolved first and the address is checked
// last: the check stands between the resolver and connect(2), on every
// connection, so neither a redirect nor a name that resolves differently the
// second time gets around it. What is refused: everything that is not the
// public internet (RFC 6890 and its registries), in every spelling of an IPv4
// address that IPv6 knows. AllowPrivate opens loopback, private and shared
// networks, for laptops and for clusters whose services are called by their
// internal names; link-local addresses, where clouds keep their credentials,
// stay closed even then.
//
// Beyond that the client has no cookies and no proxy from the environment,
// follows no redirect unless told how many, never from https to http, bounds
// the time and the size of an answer, and speaks TLS 1.2 or newer.
package outbound
