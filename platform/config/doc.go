// Package config loads one YAML file into one struct, strictly.
//
// The struct is the schema: `yaml` names a key, `default` gives its default,
// `doc` describes it on the reference page. An unknown key, a value of the
// wrong type and a failed validation are errors with their line, and all are
// reported at once. Every key may be overridden by an environment variable,
// and a secret.Text given as "<key>_file".
package config
