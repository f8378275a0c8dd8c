// Package pages is how the provider looks: its HTML templates, style sheet,
// script and texts, all embedded.
//
// A page is a [View]: the name of a template and what goes into it. [Renderer]
// picks the language (ui_locales, then Accept-Language, then English), writes
// the security headers and renders.
//
// Invariants: every page works without JavaScript; there is no inline script or
// style, so the content security policy allows none; everything that comes from
// outside is escaped by html/template; a page is never stored, framed, or the
// source of a Referer. form-action names, beside the page itself, the origin of
// the client's redirect URI, because browsers apply it to redirects that follow
// a form.
//
// Static files carry a hash of their content in their name and are immutable.
// The look is a handful of CSS custom properties at the top of assets/page.css.
// A tenant's theme sets them in a style sheet of its own, read after it; a
// client may have another theme of the tenant and a logo, whose origin is then
// the only one beside ours that the page may fetch an image from.
//
// Elements have stable ids for tests: identifier, code, password, new-password,
// submit, forward, error, use-code, use-password, resend, cancel, request-id, policy, terms, logo.
package pages
