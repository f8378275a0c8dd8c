// Command benchmarks measures what Versola carries and what that costs.
//
//	go run ./benchmarks drive --help
//
// This is the first instrument: it loads a running demo with token refreshes
// and calls through the edge, open-loop, and reports latency and the CPU time
// of every process involved, as the operating system counts it. It is a program
// of its own and never part of the system under test.
//
// Words. A step is one request: a call through the edge or a token refresh.
// Steps arrive by a Poisson process that never waits for earlier answers, and
// latency counts from the scheduled start, so that a stalled server shows as
// latency and not as a lower rate (no coordinated omission). Only the plateau
// counts: what the warm-up before it does is thrown away. A run on which the
// driver itself fell behind its schedule says so, and is no result.
package main
