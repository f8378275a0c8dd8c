// Package charts holds the Helm chart of Versola, and the tests that render it
// for every file in versola/ci and hold the result to what the program needs:
// the configuration is valid for it, the probes knock where it listens, the
// grace period covers its shutdown, nothing secret is in a ConfigMap, and the
// pods stand one to a node.
package charts
