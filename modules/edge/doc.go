// Package edge is the module in front of the APIs: it signs browsers in, holds
// their tokens, checks every call and forwards it. An upstream behind it needs
// no identity code.
//
//	GET       /login/{preset}         start a sign-in            (preset)
//	GET       /complete               its callback               (preset)
//	GET,POST  /logout/{preset}        sign out                   (logout)
//	POST      /logout/backchannel     logout token from auth     (logout)
//	GET       /logout/frontchannel    logout frame of auth       (logout)
//	ANY       /resources/{resource}/* the proxy                  (proxy)
//	GET       /permissions/me         what the caller may use    (proxy)
//	GET       /.well-known/oauth-protected-resource/resources/{resource}   (proxy)
//
// Below them: session (cookie, row, cache, refresh), provider (auth's token
// endpoint), token (access tokens), revocation (auth's feed, in memory), policy
// (the decision, without I/O), identity (the edge's own keys), catalogfeed (the
// catalog of an edge without central in its process), page (the few pages it
// shows).
//
// The edge reaches auth by the public protocol only, through a transport that
// the process hands in. Whatever is away, the edge starts and heals by itself:
// without auth sessions are kept and served while their tokens live, without
// central the last catalog stands, without its database calls whose session is
// in memory go on.
package edge
