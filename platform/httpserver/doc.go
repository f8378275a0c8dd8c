// Package httpserver is how the program serves HTTP: a listener that drains
// before it closes, the middleware that every listener has (request id, one
// log line and one metric per request, recovery from panics, limits of body,
// header and time), the address of a client behind trusted proxies, and
// problem documents (RFC 9457).
package httpserver
