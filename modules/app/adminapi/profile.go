package adminapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"versola/platform/secret"
)

// maxProfiles bounds a profile file, and the files it names, in bytes: they are
// written by hand.
const maxProfiles = 1 << 20

// Profile says where a deployment is administered, and as whom.
type Profile struct {
	API              string `yaml:"api"`                // without /v1
	Issuer           string `yaml:"issuer"`             // of the tenant "system"
	ClientID         string `yaml:"client_id"`          // of a service client of it
	ClientSecretFile string `yaml:"client_secret_file"` // relative to the profile file
	ClientSecretEnv  string `yaml:"client_secret_env"`  // the name of a variable
	CAFile           string `yaml:"ca_file"`            // PEM; empty: the system's
	PlainHTTP        bool   `yaml:"plain_http"`         // allows http beyond this machine

	secret secret.Text
	ca     []byte
}

var goType = regexp.MustCompile(` (in|into) (type )?(struct \{.*\}|map\[.*|adminapi\.\w+)`)

// DefaultProfiles is where profiles are looked for.
func DefaultProfiles() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the profile file: %w", err)
	}
	return filepath.Join(dir, "versola", "profiles.yaml"), nil
}

// ReadProfile reads a profile and its secret. Only the file's owner may reach
// it: who writes it says where secrets are sent. An empty name is the only
// profile of the file, or that called "default".
func ReadProfile(file, name string, getenv func(string) string) (*Profile, error) {
	raw, err := readPrivate(file)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Profiles map[string]*Profile `yaml:"profiles"`
	}
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		// The library names the Go types.
		return nil, fmt.Errorf("read %s: %s", file, goType.ReplaceAllString(err.Error(), ""))
	}
	if len(doc.Profiles) == 0 {
		return nil, fmt.Errorf("%s has no profiles", file)
	}
	names := slices.Sorted(maps.Keys(doc.Profiles))
	switch {
	case name != "":
	case len(names) == 1:
		name = names[0]
	default:
		name = "default"
	}
	p, known := doc.Profiles[name]
	if known && p == nil {
		p = &Profile{}
	}
	if !known {
		return nil, fmt.Errorf("%s has no profile %q; it has: %s", file, name, strings.Join(names, ", "))
	}
	if err := p.complete(filepath.Dir(file), getenv); err != nil {
		return nil, fmt.Errorf("%s: profile %q: %w", file, name, err)
	}
	return p, nil
}

func (p *Profile) complete(dir string, getenv func(string) string) error {
	for _, member := range []struct {
		name  string
		value *string
	}{{"api", &p.API}, {"issuer", &p.Issuer}} {
		*member.value = strings.TrimRight(*member.value, "/")
		if err := p.checkURL(*member.value); err != nil {
			return fmt.Errorf("%s: %w", member.name, err)
		}
	}
	if p.ClientID == "" {
		return errors.New("client_id is missing")
	}
	if (p.ClientSecretFile == "") == (p.ClientSecretEnv == "") {
		return errors.New("one of client_secret_file and client_secret_env is needed")
	}
	text := getenv(p.ClientSecretEnv)
	if p.ClientSecretFile != "" {
		raw, err := readPrivate(beside(dir, p.ClientSecretFile))
		if err != nil {
			return fmt.Errorf("client_secret_file: %w", err)
		}
		text = strings.TrimRight(string(raw), "\r\n")
	}
	if text == "" {
		return errors.New("the client secret is empty")
	}
	p.secret = secret.Text(text)
	if p.CAFile != "" {
		raw, err := os.ReadFile(beside(dir, p.CAFile))
		if err != nil {
			return fmt.Errorf("ca_file: %w", err)
		}
		p.ca = raw
	}
	return nil
}

// checkURL refuses what would send a secret or a token readable over a network.
func (p *Profile) checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("is missing")
	case err != nil:
		return errors.New("is not a URL")
	case u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("is a URL with a host, without user, query or fragment")
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return errors.New("is an https URL")
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if p.PlainHTTP || u.Hostname() == "localhost" || err == nil && addr.IsLoopback() {
		return nil
	}
	return errors.New("is http to another machine; use https, or set plain_http: true on a network that nobody else reads")
}

func beside(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// readPrivate reads a file that nobody but its owner may reach.
func readPrivate(file string) ([]byte, error) {
	// Looked at first: opening a pipe waits for somebody who writes to it.
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", file, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", file)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s is open to others (mode %04o): chmod 600 it", file, info.Mode().Perm())
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxProfiles+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if len(raw) > maxProfiles {
		return nil, fmt.Errorf("%s is longer than %d bytes", file, maxProfiles)
	}
	return raw, nil
}
