package apptest

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// RequireBrowserEnv names the variable that makes a missing Chromium a failure instead of a
// skipped test; CI sets it.
const RequireBrowserEnv = "REQUIRE_BROWSER"

// chromiumNames are the executables that are looked for.
func chromiumNames() []string {
	return []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
}

// Chromium starts a real browser with a fresh profile and returns the context
// of one tab. Where no browser is installed the test says so and is skipped,
// unless [RequireBrowserEnv] is set.
func Chromium(t testing.TB) context.Context {
	t.Helper()
	path := ""
	for _, name := range chromiumNames() {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv(RequireBrowserEnv) != "" {
			t.Fatal("no Chromium found, and " + RequireBrowserEnv + " is set: install the package chromium")
		}
		t.Skip("no Chromium found: the browser tests did not run; install the package chromium to run them")
	}
	profile, err := os.MkdirTemp("", "versola-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.Headless, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("no-first-run", true))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	bounded, cancel := context.WithTimeout(tab, 2*time.Minute)
	t.Cleanup(cancel)
	return bounded
}
