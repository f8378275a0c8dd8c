// Package telemetry is what an operator sees of a process: metrics, traces and
// the log.
//
// Metrics are recorded through OpenTelemetry and read by Prometheus from one
// handler, out of a registry that is this process's own. Labels come from
// closed sets: [RequestHistogram] takes the route's template and the status
// class, never a path. Traces go to an OTLP/HTTP collector when one is
// configured and cost nothing when none is: the provider is then the no-op one
// and the middleware steps aside. A caller's traceparent header is believed
// only from trusted networks, since whoever sets it decides what is sampled.
//
// Nothing here is global but the error handler of the OpenTelemetry library,
// which has no other place for what an exporter could not deliver.
package telemetry
