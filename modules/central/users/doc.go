// Package users is the part of the administration API that administers people:
//
//	/v1/directories/{directory}/users              list, search, create
//	/v1/directories/{directory}/users:import       lines of JSON, in bulk
//	/v1/directories/{directory}/users/{user}       get, replace, update, delete
//	                        .../password           reset: a temporary one
//	                        .../password-reset     a one-time link, shown or (:send) sent
//	                        .../sessions[/{id}]    list, end
//	                        .../factors[/{id}]     list, remove
//	                        .../limits             reset
//	                        .../events             what happened to the person
//
// A person belongs to a user directory; the gate (admin/access) lets a caller in
// who reaches the operation in every tenant that has the directory. Nobody
// grants more than they hold: whoever gives or takes a role of the system
// tenant, or changes an account that has one, needs what the role reaches.
//
// Invariants: a change, what it ends and its audit entry are one transaction; a
// person who is disabled, deleted or given another password by an administrator
// loses every session, refresh family and token with it, everywhere within a
// second; a password is never shown but for the temporary one, once, when it is
// made, and neither is a link but to who made it. The audit log, which nothing is ever removed from at a person's wish,
// has of personal data only which member changed, and identifiers masked.
package users
