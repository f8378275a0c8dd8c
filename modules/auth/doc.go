// Package auth is the OpenID provider: it wires its capabilities, mounts their
// routes and runs their background work.
//
//	GET       /.well-known/openid-configuration         discovery    CORS *
//	GET       /.well-known/oauth-authorization-server   discovery    CORS *
//	GET       /.well-known/jwks.json                    keys         CORS *
//	GET POST  /authorize                                authorize    browser
//	*         /login/{handle}/...                       login        browser
//	*         /password/reset/...                       reset        browser
//	POST      /token                                    grant        CORS of registered origins
//	GET POST  /userinfo                                 userinfo     CORS of registered origins
//	POST      /revoke                                   revoke       CORS of registered origins
//	GET POST  /logout                                   logout       browser
//
// Each tenant has these routes: the root tenant at the issuer itself, another
// under /t/{tenant}, whose metadata is also where RFC 8414 section 3.1 puts it
// (/.well-known/oauth-authorization-server/t/{tenant}). The internal listener
// has GET /internal/revocations.
//
// Errors are written in one place ([Module.HandleError]): as OAuth errors in
// JSON at back-channel endpoints, as pages where a browser looks; a database
// that is away is 503 temporarily_unavailable with Retry-After everywhere.
package auth
