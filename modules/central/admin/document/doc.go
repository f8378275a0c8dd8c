// Package document reads JSON documents strictly and says what is wrong with
// them by JSON pointer (RFC 6901), all of it at once.
//
// [Parse] refuses what parsers disagree about or the database cannot hold:
// members that stand in an object twice, anything behind the document, text
// that is not UTF-8 or has a NUL, deep nesting. [Decode] fills a declaration,
// whose members have exactly their names and types. [Merge] is RFC 7396.
package document
