package app_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"versola/db"
	"versola/modules/app/apptest"
	"versola/platform/pgtest"
	"versola/platform/secret"
)

// productionCentral is a production process on a database.
func productionCentral(t *testing.T, url string) (c *child, diagnostics string) {
	t.Helper()
	dir := t.TempDir()
	ports := apptest.FreePorts(t, 2)
	env := []string{
		"VERSOLA_PROFILE=production", "VERSOLA_STATE_DIR=" + filepath.Join(dir, "state"), "VERSOLA_DATABASE_URL=" + url,
		fmt.Sprintf("VERSOLA_CENTRAL_LISTEN=127.0.0.1:%d", ports[0]), fmt.Sprintf("VERSOLA_DIAGNOSTICS_CENTRAL=127.0.0.1:%d", ports[1]),
	}
	for _, name := range []string{"ENCRYPTION", "TOKENS", "PEPPER"} {
		k, err := secret.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, "VERSOLA_KEYS_"+name+"="+k.Reveal())
	}
	return newChild(t, dir, env, "serve", "--role=central"), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
}

func TestProduction_RefusesADatabaseThatHoldsTheDemo(t *testing.T) {
	t.Parallel()
	s := apptest.Start(t, nil)
	c, _ := productionCentral(t, s.Config.Database.URL.Reveal())
	c.start()
	ended := make(chan error, 1)
	cmd := c.cmd
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(c.out.String(), `tenant "demo"`) {
			t.Errorf("%v: %s", err, c.out)
		}
	case <-time.After(15 * time.Second):
		t.Error("production serves the demo's public secrets")
	}
}

func TestProduction_StartsOnADatabaseWithoutTheDemo(t *testing.T) {
	t.Parallel()
	c, diagnostics := productionCentral(t, pgtest.New(t, db.Auth(), db.Central()))
	c.start()
	apptest.WaitReady(t, diagnostics)
	if code := c.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
