// Package theme is how a tenant's pages look: a closed set of design tokens, the
// product's values of them, and what a tenant's own values mean.
//
// A token is a CSS custom property of the pages' style sheet. Colours exist for
// light pages and, with the prefix "dark-", for dark ones. What a tenant leaves
// out follows from what it says: a link is the accent, made deep enough to be
// read; the words on a button are black or white, whichever reads better; a dark
// accent is the light one made brighter. What is left after that is the
// product's.
//
//	tokens ──[Check]──> what is unknown, malformed or cannot be read
//	       ──[CSS]────> :root { ... } and its dark half
//
// [Check] holds the result to the contrast of WCAG 2.2: 4.5:1 for text (success
// criterion 1.4.3), 3:1 for the border of a field (1.4.11), in light and dark.
//
// Invariant: nothing of what a tenant wrote reaches the style sheet unparsed: a
// colour is six digits again, a length a number, a font a quoted name.
package theme
