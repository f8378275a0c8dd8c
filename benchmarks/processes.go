package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"versola/platform/clock"
)

// clockTick is the unit of CPU time in /proc (USER_HZ, 100 on every Linux).
const clockTick = 10 * time.Millisecond

// usage is what a group of processes used.
type usage struct {
	CPU    time.Duration `json:"cpu_ns"`
	Memory int64         `json:"peak_rss_bytes"`
}

// processes watches Versola, PostgreSQL and the driver itself.
type processes struct {
	pids          []int
	mu            sync.Mutex
	started       time.Time
	before, after map[string]usage
	took          time.Duration
}

// watchProcesses makes sure that there is something to watch: CPU time is the
// one figure that means the same on every machine. Without pids the one process
// named versola is meant.
func watchProcesses(pids []int) (*processes, error) {
	p := &processes{pids: pids}
	now, err := p.measure()
	if err != nil {
		return nil, err
	}
	p.before, p.started = now, clock.Monotonic()
	return p, nil
}

func (p *processes) begin() {
	now, err := p.measure()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.before, p.started = now, clock.Monotonic()
	}
}

func (p *processes) end() {
	now, err := p.measure()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.after = now
	}
	p.took = clock.Since(p.started)
}

// used returns the CPU time and peak memory of a group over the plateau.
func (p *processes) used(group string) usage {
	return usage{CPU: p.after[group].CPU - p.before[group].CPU, Memory: p.after[group].Memory}
}

// measure reads /proc for every process that belongs to a group: the driver,
// Versola, and PostgreSQL as Versola's own children or, where it has none, every
// postgres of the machine. Processes that end in between take their time with
// them, which PostgreSQL's short-lived workers do; over a plateau that is
// little.
func (p *processes) measure() (map[string]usage, error) {
	all, err := readProcesses()
	if err != nil {
		return nil, err
	}
	if len(p.pids) == 0 {
		for pid, q := range all {
			if q.name == "versola" {
				p.pids = append(p.pids, pid)
			}
		}
		if len(p.pids) != 1 {
			return nil, fmt.Errorf("%d processes named versola on this machine: say with --pid which to measure (go build . && ./versola serve --role=all starts one)", len(p.pids))
		}
	}
	groups := map[string]usage{}
	add := func(group string, q process) {
		groups[group] = usage{CPU: groups[group].CPU + q.cpu, Memory: groups[group].Memory + readPeak(q.dir)}
	}
	for _, pid := range p.pids {
		q, ok := all[pid]
		if !ok {
			return nil, fmt.Errorf("there is no process %d", pid)
		}
		add("versola", q)
	}
	if q, ok := all[os.Getpid()]; ok {
		add("driver", q)
	}
	own := func(q process) bool {
		for ; q.parent > 0; q = all[q.parent] {
			if slices.Contains(p.pids, q.parent) {
				return true
			}
		}
		return false
	}
	var ours, others []process
	for _, q := range all {
		switch {
		case q.name != "postgres":
		case own(q):
			ours = append(ours, q)
		default:
			others = append(others, q)
		}
	}
	if len(ours) == 0 {
		ours = others
	}
	for _, q := range ours {
		add("postgres", q)
	}
	return groups, nil
}

type process struct {
	dir    string
	name   string
	parent int
	cpu    time.Duration
}

func readProcesses() (map[int]process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		return nil, errors.New("no /proc on this machine: CPU cannot be measured")
	}
	all := map[int]process{}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if q, err := readStat(dir); err == nil { // else it has just ended
			all[pid] = q
		}
	}
	return all, nil
}

// readStat reads the name, parent and CPU time of a process (proc(5), fields 2,
// 4, 14 and 15).
func readStat(dir string) (process, error) {
	raw, err := os.ReadFile(dir + "/stat") //nolint:gosec // under /proc
	if err != nil {
		return process{}, fmt.Errorf("read process: %w", err)
	}
	open, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if open < 0 || end < open {
		return process{}, errors.New("read process: malformed stat")
	}
	fields := strings.Fields(string(raw[end+1:]))
	const parent, user, system = 4 - 3, 14 - 3, 15 - 3 // field 3 is the first after the name
	if len(fields) <= system {
		return process{}, errors.New("read process: malformed stat")
	}
	of, err0 := strconv.Atoi(fields[parent])
	u, err1 := strconv.ParseInt(fields[user], 10, 64)
	s, err2 := strconv.ParseInt(fields[system], 10, 64)
	if err := errors.Join(err0, err1, err2); err != nil {
		return process{}, fmt.Errorf("read process: %w", err)
	}
	return process{dir: dir, name: string(raw[open+1 : end]), parent: of, cpu: time.Duration(u+s) * clockTick}, nil
}

// readPeak returns the peak resident memory in bytes, 0 where it is not told.
func readPeak(dir string) int64 {
	raw, err := os.ReadFile(dir + "/status") //nolint:gosec // under /proc
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}
