// Package request reads what every operation of the administration API takes
// outside its document: the parameters of the query and the condition on a
// version.
//
// A parameter that the OpenAPI document does not have for the operation, that
// has no value of its kind or stands there twice is refused: to leave it out
// would show, export or change more than was asked for. A change names the
// version that it changes (RFC 9110 section 13.1.1), so that nobody overwrites
// what they have not seen.
package request
