// Package page is what the edge shows to people itself: that a sign-in did not
// work, and the question whether to sign out. Pages are plain HTML under a
// Content-Security-Policy that allows no script, no foreign form target and no
// frame; they are never cached.
package page
