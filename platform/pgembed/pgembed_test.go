package pgembed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/platform/clock"
)

// ownerVariable makes this test binary an owner of a cluster, to be killed.
const ownerVariable = "PGEMBED_TEST_OWNER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerVariable); dir != "" {
		own(dir)
		return
	}
	os.Exit(m.Run())
}

func own(dir string) {
	c, err := Start(context.Background(), Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, "error:", err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, "ready", c.URL())
	select {}
}

// owner starts a child that owns the cluster of dir.
func owner(t *testing.T, dir string) (cmd *exec.Cmd, firstLine <-chan string) {
	t.Helper()
	cmd = exec.Command(os.Args[0]) //nolint:gosec // this test binary
	cmd.Env = append(os.Environ(), ownerVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		lines <- strings.TrimSpace(line)
	}()
	return cmd, lines
}

// stateDir is like t.TempDir, whose parent only root may enter.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pgembed-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func start(t *testing.T, dir string) *Cluster {
	t.Helper()
	began := clock.Monotonic()
	c, err := Start(context.Background(), Options{Dir: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", clock.Since(began))
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	v, err := tryQuery[T](url, sql)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func tryQuery[T any](url, sql string) (v T, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return v, err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, sql).Scan(&v)
	return v, err
}

const (
	keep     = "CREATE TABLE kept AS SELECT 7 AS n"
	readKept = "SELECT n FROM kept"
)

func execute(t *testing.T, url, sql string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

func postmaster(t *testing.T, c *Cluster) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.place.data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began := clock.Monotonic(); clock.Since(began) < 20*time.Second; {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond) // another process has to move
	}
	t.Fatalf("did not happen: %s", what)
}

func TestStart_ASecondStartKeepsTheData(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	c := start(t, dir)
	execute(t, c.URL(), keep)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	c = start(t, dir)
	if n := query[int](t, c.URL(), readKept); n != 7 {
		t.Fatalf("kept %d", n)
	}
	for setting, want := range map[string]string{
		"listen_addresses": "", "fsync": "on", "synchronous_commit": "on", "server_encoding": "UTF8",
	} {
		if got := query[string](t, c.URL(), "SHOW "+setting); got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
	if info, err := os.Stat(c.place.socket); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("socket directory: %v %v", info.Mode(), err)
	}
}

func TestStart_ServerIsOutsideTheTerminalsProcessGroup(t *testing.T) {
	t.Parallel()
	c := start(t, stateDir(t))
	pid := postmaster(t, c)
	if group, err := syscall.Getpgid(pid); err != nil || group == syscall.Getpgrp() {
		t.Fatalf("group %d is ours: %v", group, err)
	}
}

func TestStart_AfterTheOwnerWasKilledTheDataIsThere(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	cmd, lines := owner(t, dir)
	url, ok := strings.CutPrefix(<-lines, "ready ")
	if !ok {
		t.Fatalf("owner: %s", url)
	}
	execute(t, url, keep)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c := start(t, dir)
	if n := query[int](t, c.URL(), readKept); n != 7 {
		t.Fatalf("kept %d", n)
	}
}

func TestStart_KilledDuringInitialisationBeginsAnew(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	for _, after := range []time.Duration{20 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
		cmd, _ := owner(t, dir)
		time.Sleep(after) // somewhere in the middle of initdb
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	start(t, dir)
}

func TestStart_StopsAServerThatWasLeftRunning(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	c := start(t, dir)
	execute(t, c.URL(), keep)
	place, bin := c.place, c.server.bin
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	// What is left where there is no death signal: a server without an owner.
	left := exec.Command(filepath.Join(bin.dir, "postgres"), c.server.arguments()...) //nolint:gosec // found on this machine
	left.Dir = place.home
	left.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: place.cred}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan error, 1)
	go func() { reaped <- left.Wait() }()
	eventually(t, "the left server answers", func() bool {
		_, err := tryQuery[int](place.url(databaseName), readKept)
		return err == nil
	})
	c = start(t, dir)
	<-reaped
	if n := query[int](t, c.URL(), readKept); n != 7 {
		t.Fatalf("kept %d", n)
	}
	if pid := postmaster(t, c); pid == left.Process.Pid {
		t.Fatal("still the left server")
	}
}

func TestStart_StalePidFileIsNoObstacle(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"of another process": fmt.Sprintf("%d\n/elsewhere\n", os.Getpid()),
		"of no process":      "4194301\n/elsewhere\n",
		"empty":              "",
		"garbage":            "\x00\xff",
		"of init":            "1\n",
		"negative":           "-1\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := stateDir(t)
			c := start(t, dir)
			path, cred := filepath.Join(c.place.data, "postmaster.pid"), c.place.cred
			if err := c.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if cred != nil {
				if err := os.Chown(path, int(cred.Uid), int(cred.Gid)); err != nil {
					t.Fatal(err)
				}
			}
			start(t, dir)
		})
	}
}

func TestStart_TwoOwnersOfOneDirectoryAreRefused(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	start(t, dir)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{dir, link} {
		_, err := Start(context.Background(), Options{Dir: same, Log: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
			t.Fatalf("second start on %s: %v", same, err)
		}
	}
	_, lines := owner(t, dir)
	if line := <-lines; !strings.Contains(line, ErrInUse.Error()) {
		t.Fatalf("second process: %s", line)
	}
}

func TestServer_StartsAgainWhenThePostmasterIsKilled(t *testing.T) {
	t.Parallel()
	c := start(t, stateDir(t))
	execute(t, c.URL(), keep)
	for range 2 {
		pid := postmaster(t, c)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the server answers again", func() bool {
			n, err := tryQuery[int](c.URL(), readKept)
			return err == nil && n == 7 && postmaster(t, c) != pid
		})
	}
}

func TestStart_DeepStateDirectoryGetsAShortSocketPath(t *testing.T) {
	t.Parallel()
	parent := stateDir(t)
	if err := os.Chmod(parent, 0o755); err != nil { //nolint:gosec // passed through by the database user
		t.Fatal(err)
	}
	dir := filepath.Join(parent, strings.Repeat("deep/", 30))
	c := start(t, dir)
	if len(c.place.socket) > maxSocketDir || !c.place.tempDir {
		t.Fatalf("socket in %s", c.place.socket)
	}
	query[int](t, c.URL(), "SELECT 1")
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.place.socket); !os.IsNotExist(err) {
		t.Fatalf("socket directory is left: %v", err)
	}
}

func TestStart_StateDirectoryMayHaveAnyName(t *testing.T) {
	t.Parallel()
	parent := stateDir(t)
	if err := os.Chmod(parent, 0o755); err != nil { //nolint:gosec // passed through by the database user
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "a, \"b' %20 \u00fc\n=?&c")
	c := start(t, dir)
	query[int](t, c.URL(), "SELECT 1")
	if _, err := os.Stat(filepath.Join(dir, "postgres", "data", "PG_VERSION")); err != nil {
		t.Error(err)
	}
}

func TestStart_AsRootBehindAClosedDirectoryKeepsTheClusterElsewhere(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has to change its user")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "state")
	c := start(t, dir)
	home := c.place.home
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if !strings.HasPrefix(home, outsideRoot) {
		t.Fatalf("home %s", home)
	}
	execute(t, c.URL(), keep)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	c = start(t, dir)
	if n := query[int](t, c.URL(), readKept); n != 7 || c.place.home != home {
		t.Fatalf("kept %d in %s", n, c.place.home)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	// A state directory made anew has new keys, so it needs a new cluster.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	c = start(t, dir)
	fresh := c.place.home
	t.Cleanup(func() { _ = os.RemoveAll(fresh) })
	if _, err := tryQuery[int](c.URL(), readKept); err == nil {
		t.Fatal("a new state directory sees the old cluster")
	}
}

func TestStart_AsRootAClusterKeepsItsOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has to change its user")
	}
	dir := stateDir(t)
	c := start(t, dir)
	execute(t, c.URL(), keep)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	const person = 4321 // neither postgres nor nobody
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, person, person)
	})
	if err != nil {
		t.Fatal(err)
	}
	c = start(t, dir)
	if n := query[int](t, c.URL(), readKept); n != 7 {
		t.Fatalf("kept %d", n)
	}
	for _, path := range []string{c.place.home, c.place.data, filepath.Join(c.place.data, "PG_VERSION"), c.place.socket} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != person {
			t.Errorf("%s was taken from its owner", path)
		}
	}
}

func TestStart_MissingBinariesNameTheRemedy(t *testing.T) {
	t.Setenv(binVariable, t.TempDir())
	_, err := Start(context.Background(), Options{Dir: stateDir(t), Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, ErrNoBinaries) {
		t.Fatal(err)
	}
	for _, want := range []string{binVariable, "apt-get install postgresql", "postgresql-server", "brew install postgresql@17", "VERSOLA_DATABASE_URL"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("message lacks %q:\n%v", want, err)
		}
	}
}

func TestStart_ClusterOfAnotherMajorVersionIsRefused(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	data := filepath.Join(dir, "postgres", "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(context.Background(), Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "needs PostgreSQL 9") {
		t.Fatal(err)
	}
}

func TestStart_FailureShowsWhatTheServerSaid(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	c := start(t, dir)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(c.place.data, "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	_, err := Start(context.Background(), Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "pg_control") {
		t.Fatal(err)
	}
	// The failed start gave the directory free.
	if _, err := Start(context.Background(), Options{Dir: dir, Log: slog.New(slog.DiscardHandler)}); errors.Is(err, ErrInUse) {
		t.Fatal(err)
	}
}

func TestStart_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	dir := stateDir(t)
	if c, err := Start(ctx, Options{Dir: dir, Log: slog.New(slog.DiscardHandler)}); err == nil {
		_ = c.Stop()
		t.Skip("the machine starts PostgreSQL in under 50 ms")
	}
	start(t, dir)
}
