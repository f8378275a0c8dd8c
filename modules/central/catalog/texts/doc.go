// Package texts holds the words of pages and messages: the product's, in every
// language that it comes in, and what a tenant says instead.
//
//	languages/*.json ──> [Product] ──┐
//	a tenant's languages and texts ──┴─[Texts.With]──> the tenant's [Texts]
//	a tenant's message templates ───────────────────> [Texts.Message]
//
// A text has placeholders in braces, {client}. What a tenant writes is checked
// once, by [Check] and [CheckMessage]: its key is one of the product's, its
// placeholders are those of the product's text, and what the person cannot do
// without ({code}, {link}) is in it. It stays text: pages escape it.
//
// Invariants: every language of the product has every key (a test); a Texts
// never changes; a lookup is one of a map. A language that only a tenant has
// falls back, text by text, to the product's language that is nearest, then to
// the product's default.
package texts
