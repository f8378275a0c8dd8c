package pgembed

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

const (
	// outsideRoot is where clusters live whose state directory the database
	// user cannot reach.
	outsideRoot = "/var/lib/versola"
	// maxSocketDir is the longest socket directory: the kernel's limit for a
	// socket's path is 104 bytes on macOS (108 on Linux), and
	// "/.s.PGSQL.5432" and its terminator take 15.
	maxSocketDir = 104 - 15 - 1
	// maxLog is the size at which the server's log is put aside at a start.
	maxLog = 10 << 20
	// tailBytes of the server's log go into an error: the last few lines.
	tailBytes = 2000
)

// place is where a cluster lives and whose it is.
type place struct {
	state   string // the state directory
	home    string // owned by the database user
	data    string
	socket  string
	fetched string // fetched binaries
	log     string // in the state directory: the database user must not choose what root opens
	cred    *syscall.Credential
	hash    string // names this state directory in shared folders
	tempDir bool   // socket is a temporary directory
}

// locate decides where the cluster of state directory dir lives.
func locate(dir string, log *slog.Logger) (place, error) {
	sum := sha256.Sum256([]byte(dir))
	p := place{
		state: dir, home: filepath.Join(dir, "postgres"), fetched: filepath.Join(dir, "postgres-bin"),
		log: filepath.Join(dir, "postgres.log"), hash: hex.EncodeToString(sum[:6]),
	}
	if os.Geteuid() == 0 {
		if err := p.unprivileged(log); err != nil {
			return p, err
		}
	}
	if err := p.own(p.home); err != nil {
		return p, err
	}
	p.data, p.socket = filepath.Join(p.home, "data"), filepath.Join(p.home, "socket")
	return p, nil
}

// unprivileged finds a user for the server, and a home which that user reaches.
func (p *place) unprivileged(log *slog.Logger) error {
	cred, name := clusterOwner(filepath.Join(p.home, "data")), "the cluster's owner"
	if cred == nil {
		var err error
		if cred, name, err = databaseUser(); err != nil {
			return err
		}
	}
	p.cred = cred
	if blocked := unreachable(filepath.Dir(p.state), cred); blocked == "" {
		// The state directory is ours: letting others pass through it, not
		// list it, opens nothing, since every secret in it has mode 0600.
		info, err := os.Stat(p.state)
		if err != nil {
			return fmt.Errorf("look at state directory: %w", err)
		}
		if err := os.Chmod(p.state, info.Mode().Perm()|0o011); err == nil && unreachable(p.state, cred) == "" {
			return nil
		}
	}
	id, err := p.identity()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(outsideRoot, 0o755); err != nil { //nolint:gosec // passed through by the database user
		return fmt.Errorf("make %s: %w", outsideRoot, err)
	}
	p.home, p.fetched = filepath.Join(outsideRoot, p.hash+"-"+id), filepath.Join(outsideRoot, "postgres-bin")
	log.Info("the database user cannot reach the state directory: its cluster is kept elsewhere",
		"user", name, "state_dir", p.state, "cluster", p.home)
	return nil
}

// identity is a random name kept in the state directory. With it, a state
// directory that was removed and made anew gets a new cluster, as it gets new
// keys, instead of a cluster whose secrets its keys cannot open.
func (p *place) identity() (string, error) {
	path := filepath.Join(p.state, "postgres-id")
	b, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(b)); err == nil && len(id) == 12 && strings.Trim(id, "0123456789abcdef") == "" {
		return id, nil
	}
	raw := make([]byte, 6)
	if _, err := io.ReadFull(rand.Reader, raw); err != nil {
		return "", fmt.Errorf("name cluster: %w", err)
	}
	id := hex.EncodeToString(raw)
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("name cluster: %w", err)
	}
	return id, nil
}

// clusterOwner is whose an existing data directory is, when that is not root: a
// person who once starts versola as root finds their cluster, and keeps it.
func clusterOwner(data string) *syscall.Credential {
	info, err := os.Lstat(data)
	if err != nil || !info.IsDir() {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 {
		return nil
	}
	return &syscall.Credential{Uid: st.Uid, Gid: st.Gid}
}

// databaseUser is whom the server of a new cluster runs as when we are root.
func databaseUser() (*syscall.Credential, string, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, name, nil
		}
	}
	return nil, "", errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody to run it as: start versola as another user")
}

// unreachable returns the first directory on the way to path, or path itself,
// which the user may not pass through; "" when there is none. Access lists are
// not looked at.
func unreachable(path string, cred *syscall.Credential) string {
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return dir
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		bit := fs.FileMode(0o001)
		switch {
		case ok && st.Uid == cred.Uid:
			bit = 0o100
		case ok && st.Gid == cred.Gid:
			bit = 0o010
		}
		if info.Mode().Perm()&bit == 0 {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// own makes a private directory of the database user. Its parent is ours.
func (p *place) own(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make directory of the database: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at directory of the database: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if p.cred != nil {
		if err := os.Lchown(dir, int(p.cred.Uid), int(p.cred.Gid)); err != nil {
			return fmt.Errorf("hand directory to the database user: %w", err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory
		return fmt.Errorf("close directory of the database: %w", err)
	}
	return nil
}

// plainPath is a path that needs no quoting, neither in the server's list of
// socket directories nor in a connection string's list of hosts.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._@+-]+$`)

// makeSocketDir makes an empty socket directory: in the home, or under /tmp
// when that path is too long for a socket or has odd characters.
func (p *place) makeSocketDir() error {
	if err := p.removeStaleTemp(); err != nil {
		return err
	}
	if len(p.socket) <= maxSocketDir && plainPath.MatchString(p.socket) {
		// Inside a directory of the database user nothing is followed or
		// changed by us as root; what a crashed server left there goes.
		if err := os.RemoveAll(p.socket); err != nil {
			return fmt.Errorf("clear socket directory: %w", err)
		}
		return p.own(p.socket)
	}
	dir, err := os.MkdirTemp("/tmp", p.tempPrefix())
	if err != nil {
		return fmt.Errorf("make socket directory: %w", err)
	}
	p.socket, p.tempDir = dir, true
	return p.own(dir)
}

func (p *place) tempPrefix() string { return "versola-" + p.hash + "-" }

// removeStaleTemp removes socket directories that a killed process of this
// state directory left: we hold its lock, so none is in use.
func (p *place) removeStaleTemp() error {
	old, err := filepath.Glob("/tmp/" + p.tempPrefix() + "*")
	if err != nil {
		return fmt.Errorf("look for old socket directories: %w", err)
	}
	for _, dir := range old {
		_ = os.RemoveAll(dir) // another user's stays, and harms nothing
	}
	return nil
}

func (p *place) removeSocketDir() error {
	if !p.tempDir {
		return nil
	}
	if err := os.RemoveAll(p.socket); err != nil {
		return fmt.Errorf("remove socket directory: %w", err)
	}
	return nil
}

// openLog opens the server's log for appending.
func (p *place) openLog() (*os.File, error) {
	if info, err := os.Lstat(p.log); err == nil && info.Size() > maxLog {
		if err := os.Rename(p.log, p.log+".1"); err != nil {
			return nil, fmt.Errorf("put server log aside: %w", err)
		}
	}
	f, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open server log: %w", err)
	}
	return f, nil
}

// logTail returns the last lines of the server's log, to be appended to an error.
func (p *place) logTail() string {
	f, err := os.Open(p.log)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = f.Seek(-tailBytes, io.SeekEnd)
	}
	b, err := io.ReadAll(io.LimitReader(f, tailBytes))
	text := strings.TrimSpace(string(b))
	if err != nil || text == "" {
		return ""
	}
	return "\n" + p.log + " ends with:\n" + text
}

func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find absolute path of %s: %w", path, err)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("resolve %s: %w", abs, err)
	}
	return resolved, nil
}
