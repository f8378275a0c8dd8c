// Package rules compiles and evaluates the expressions of endpoints, written in
// the Common Expression Language (CEL): allow, of type bool, and the values of
// injected headers, of type string.
//
// Registration and the edge compile by the same function, so what is accepted
// runs. What an expression may name is typed, member by member ([Input]): a
// misspelt member is refused at registration, not denied at run time. Only the
// members of a JSON body are known no sooner than a call comes.
//
//	token    the claims of the access token
//	user     the person behind it; of a service client, nobody
//	request  method, path, parameters, query, headers, address, time, body
//
// Invariants:
//
//   - an evaluation ends: CEL has no unbounded loops, its cost is limited, and
//     the pattern of matches() is a literal whose size is limited;
//   - what two readers could understand in two ways is an error, and an error
//     denies: a query parameter or a member of an object that is there twice,
//     also in another case, a number that does not keep its value, damaged text;
//   - headers are matched without case, and only those are seen that the caller
//     hands in: the edge leaves out credentials and what no client may state;
//   - an error says nothing of the values that it met.
package rules
