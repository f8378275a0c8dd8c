// Package request reads what every operation of the administration API takes
// outside its document: the parameters of the query and the condition on a
// version.
//
// A parameter that is misspelt, malformed or stands there twice is refused: to
// leave it out would show, or export, more than was asked for. A change names
// the version that it changes (RFC 9110 section 13.1.1), so that nobody
// overwrites what they have not seen.
package request
