// Package config loads one YAML file into one struct, strictly.
//
// The struct is the schema: `yaml` names a key, `default` gives its default,
// `doc` describes it on the reference page. Fields are strings, integers,
// numbers, booleans, secrets (secret.Text), lists of strings or of secrets,
// and structs of these.
//
// A value comes from, the later winning: its default, the file, the
// environment (a prefix and the key's path in upper case, joined by "_"), and
// the command line's flags. A secret may be given as "<key>_file" (in the
// environment "..._FILE"), the path of a file that holds it.
//
// Nothing is ignored: an unknown or doubled key, a value of the wrong type, an
// environment variable that sets nothing, and whatever the struct's own
// [Validator] reports are problems, all reported at once with their line or
// variable. No problem shows the value of a secret.
package config
