package charts_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"versola/modules/app"
	"versola/platform/config"
)

// kubernetes is the version that the chart is rendered for.
const kubernetes = "1.34.0"

// object is a Kubernetes object, read without its types.
type object map[string]any

// at walks maps by name and lists by index; what is not there is nil.
func (o object) at(path ...any) any {
	var v any = map[string]any(o)
	for _, p := range path {
		switch step := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				return nil
			}
			v = m[step]
		case int:
			l, ok := v.([]any)
			if !ok || step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

func (o object) kind() string { return fmt.Sprint(o.at("kind")) }
func (o object) name() string { return fmt.Sprint(o.at("metadata", "name")) }

// helm finds the program; CI must have it.
func helm(t *testing.T) string {
	t.Helper()
	candidates := []string{os.Getenv("HELM"), "helm", filepath.Join("..", "bin", "helm")}
	if home, err := os.UserHomeDir(); err == nil {
		candidates = append(candidates, filepath.Join(home, "go", "bin", "helm"))
	}
	for _, c := range candidates {
		if path, err := exec.LookPath(c); err == nil || errors.Is(err, exec.ErrDot) {
			if path, err = filepath.Abs(path); err == nil {
				return path
			}
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("helm is not installed")
	}
	t.Skip("helm is not installed (go install helm.sh/helm/v3/cmd/helm@v3.22.0): the chart is not tested")
	return ""
}

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(t.Context(), helm(t), args...)
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

func render(t *testing.T, values string, more ...string) ([]object, error) {
	t.Helper()
	args := append([]string{"template", "release", "versola", "--namespace", "identity", "--kube-version", kubernetes, "-f", values}, more...)
	text, err := run(t, args...)
	if err != nil {
		return nil, err
	}
	var objects []object
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o map[string]any
		switch err := d.Decode(&o); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("read what helm rendered: %w", err)
		case o != nil:
			objects = append(objects, o)
		}
	}
}

// eachValues runs a test on what every file of ci renders to.
func eachValues(t *testing.T, test func(t *testing.T, objects []object)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("versola", "ci", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no value files: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".yaml"), func(t *testing.T) {
			t.Parallel()
			objects, err := render(t, f)
			if err != nil {
				t.Fatal(err)
			}
			test(t, objects)
		})
	}
}

func ofKind(objects []object, kind string) []object {
	return slices.DeleteFunc(slices.Clone(objects), func(o object) bool { return o.kind() != kind })
}

// pods returns the pod templates of Deployments and Jobs.
func pods(objects []object) map[string]object {
	out := map[string]object{}
	for _, o := range objects {
		if o.kind() == "Deployment" || o.kind() == "Job" {
			spec, _ := o.at("spec", "template", "spec").(map[string]any)
			out[o.kind()+" "+o.name()] = spec
		}
	}
	return out
}

func TestChart_LintsWithEveryValueFile(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob(filepath.Join("versola", "ci", "*.yaml"))
	for _, f := range files {
		if _, err := run(t, "lint", "--strict", "--kube-version", kubernetes, "-f", f, "versola"); err != nil {
			t.Error(err)
		}
	}
}

func TestChart_ConfigurationIsValidForTheProgram(t *testing.T) {
	t.Parallel()
	eachValues(t, func(t *testing.T, objects []object) {
		seen := 0
		for _, o := range ofKind(objects, "ConfigMap") {
			data, _ := o.at("data").(map[string]any)
			for name, text := range data {
				seen++
				dir := t.TempDir()
				writeSecrets(t, dir)
				file := filepath.Join(dir, name)
				write(t, file, strings.NewReplacer("/run/secrets/versola-edge", dir, "/run/secrets/versola", dir).Replace(fmt.Sprint(text)))
				cfg, _, problems := config.Load[app.Config](file, nil)
				for _, p := range problems {
					t.Errorf("%s: %v", o.name(), p)
				}
				if cfg != nil && cfg.Role+".yaml" != name {
					t.Errorf("%s: role %q", o.name(), cfg.Role)
				}
			}
		}
		if seen == 0 {
			t.Error("no configuration")
		}
	})
}

// writeSecrets makes the files that the chart mounts from the Secret.
func writeSecrets(t *testing.T, dir string) {
	t.Helper()
	random := func() string {
		b := make([]byte, 32)
		_, _ = rand.Read(b)
		return base64.StdEncoding.EncodeToString(b)
	}
	write(t, filepath.Join(dir, "databaseURL"), "postgres://versola:secret@db.example.com:5432/versola?sslmode=verify-full\n")
	write(t, filepath.Join(dir, "encryptionKeys"), random()+"\n"+random()+"\n")
	write(t, filepath.Join(dir, "tokenKeys"), random()+"\n")
	write(t, filepath.Join(dir, "sessionKeys"), random()+"\n")
	write(t, filepath.Join(dir, "pepper"), random()+"\n")
	write(t, filepath.Join(dir, "privateKeys"), privateKeys(t))
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChart_NothingSecretIsInAConfigMap(t *testing.T) {
	t.Parallel()
	eachValues(t, func(t *testing.T, objects []object) {
		if secrets := ofKind(objects, "Secret"); len(secrets) > 0 {
			t.Errorf("the chart makes Secrets, whose values would be in the release: %v", secrets)
		}
		for _, o := range ofKind(objects, "ConfigMap") {
			text := fmt.Sprint(o.at("data"))
			for _, word := range []string{"postgres://", "private_keys:", "session_keys:", "pepper:", "encryption:", "tokens:", "url: postgres"} {
				for line := range strings.Lines(text) {
					if strings.HasPrefix(strings.TrimSpace(line), word) {
						t.Errorf("%s has %q", o.name(), line)
					}
				}
			}
		}
	})
}

func TestChart_PodsAreConfined(t *testing.T) {
	t.Parallel()
	eachValues(t, func(t *testing.T, objects []object) {
		for name, pod := range pods(objects) {
			for path, want := range map[string]any{
				"automountServiceAccountToken": false, "enableServiceLinks": false,
				"securityContext.runAsNonRoot": true, "securityContext.runAsUser": 65532, "securityContext.seccompProfile.type": "RuntimeDefault",
				"hostNetwork": nil, "hostPID": nil,
			} {
				if got := pod.at(steps(path)...); got != want {
					t.Errorf("%s: %s is %v, want %v", name, path, got, want)
				}
			}
			for path, want := range map[string]any{
				"securityContext.readOnlyRootFilesystem": true, "securityContext.allowPrivilegeEscalation": false,
				"resources.limits.cpu": nil, "securityContext.privileged": nil,
			} {
				if got := pod.at(append([]any{"containers", 0}, steps(path)...)...); got != want {
					t.Errorf("%s: %s is %v, want %v", name, path, got, want)
				}
			}
			if got := fmt.Sprint(pod.at("containers", 0, "securityContext", "capabilities", "drop")); got != "[ALL]" {
				t.Errorf("%s drops %s", name, got)
			}
			if pod.at("containers", 0, "resources", "limits", "memory") == nil {
				t.Errorf("%s has no memory limit, which the program's own follows", name)
			}
		}
	})
}

func steps(path string) []any {
	var out []any
	for s := range strings.SplitSeq(path, ".") {
		out = append(out, s)
	}
	return out
}

func TestChart_DeploymentsMatchTheProgram(t *testing.T) {
	t.Parallel()
	eachValues(t, func(t *testing.T, objects []object) {
		deployments := ofKind(objects, "Deployment")
		if len(deployments) == 0 {
			t.Fatal("no deployment")
		}
		for _, d := range deployments {
			role, _ := d.at("spec", "template", "metadata", "labels", "app.kubernetes.io/component").(string)
			pod := pods([]object{d})["Deployment "+d.name()]
			checkPlacement(t, d, pod)
			checkLifecycle(t, pod, role)
			if got, want := fmt.Sprint(pod.at("containers", 0, "args")), fmt.Sprintf("[serve --role=%s --config=/etc/versola/%s.yaml]", role, role); got != want {
				t.Errorf("%s: args %s, want %s", d.name(), got, want)
			}
			if sum, _ := d.at("spec", "template", "metadata", "annotations", "checksum/config").(string); len(sum) != 64 {
				t.Errorf("%s: a changed configuration does not restart the pods", d.name())
			}
			checkMounts(t, d.name(), pod)
		}
	})
}

func checkPlacement(t *testing.T, d, pod object) {
	t.Helper()
	want := fmt.Sprint(d.at("spec", "selector", "matchLabels"))
	anti := []any{"affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution", 0}
	spread := []any{"topologySpreadConstraints", 0}
	for name, path := range map[string][]any{"anti-affinity": anti, "spread": spread} {
		if got := fmt.Sprint(pod.at(append(slices.Clone(path), "labelSelector", "matchLabels")...)); got != want {
			t.Errorf("%s: %s selects %s, the pods have %s", d.name(), name, got, want)
		}
		if got := pod.at(append(slices.Clone(path), "topologyKey")...); got != "kubernetes.io/hostname" {
			t.Errorf("%s: %s is by %v", d.name(), name, got)
		}
	}
	if surge := d.at("spec", "strategy", "rollingUpdate", "maxSurge"); surge != 0 {
		t.Errorf("%s: a surge of %v waits for ever where every node has its pod", d.name(), surge)
	}
}

func checkLifecycle(t *testing.T, pod object, role string) {
	t.Helper()
	diagnostics := map[string]int{"auth": 8081, "edge": 8096}[role]
	ports := map[string]any{}
	list, _ := pod.at("containers", 0, "ports").([]any)
	for _, p := range list {
		ports[fmt.Sprint(object(p.(map[string]any)).at("name"))] = object(p.(map[string]any)).at("containerPort")
	}
	if ports["diagnostics"] != diagnostics {
		t.Errorf("%s: diagnostics on %v, want %d", role, ports["diagnostics"], diagnostics)
	}
	for probe, path := range map[string]string{"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"} {
		if got := pod.at("containers", 0, probe, "httpGet", "path"); got != path {
			t.Errorf("%s: %s asks %v", role, probe, got)
		}
		if got := pod.at("containers", 0, probe, "httpGet", "port"); got != "diagnostics" {
			t.Errorf("%s: %s knocks at %v", role, probe, got)
		}
	}
	grace, _ := pod.at("terminationGracePeriodSeconds").(int)
	sleep, _ := pod.at("containers", 0, "lifecycle", "preStop", "sleep", "seconds").(int)
	const shutdown = 15 // modules/app: shutdownTimeout
	if sleep < 1 || grace < sleep+shutdown {
		t.Errorf("%s: %d s of grace for %d s of sleep and %d s of shutdown", role, grace, sleep, shutdown)
	}
}

// checkMounts holds mounted volumes to declared ones.
func checkMounts(t *testing.T, name string, pod object) {
	t.Helper()
	declared, mounted := map[string]bool{}, map[string]bool{}
	for list, into := range map[string]map[string]bool{"volumes": declared, "mounts": mounted} {
		items, _ := pod.at("volumes").([]any)
		if list == "mounts" {
			items, _ = pod.at("containers", 0, "volumeMounts").([]any)
		}
		for _, item := range items {
			into[fmt.Sprint(object(item.(map[string]any)).at("name"))] = true
		}
	}
	if !maps.Equal(declared, mounted) {
		t.Errorf("%s: volumes %v, mounts %v", name, declared, mounted)
	}
}

func TestChart_MigratesBeforeInstallAndUpgrade(t *testing.T) {
	t.Parallel()
	eachValues(t, func(t *testing.T, objects []object) {
		jobs := ofKind(objects, "Job")
		if len(jobs) == 0 && !strings.HasSuffix(t.Name(), "auth-only") {
			t.Error("no migration")
		}
		for _, j := range jobs {
			if got := j.at("metadata", "annotations", "helm.sh/hook"); got != "pre-install,pre-upgrade" {
				t.Errorf("%s: hook %v", j.name(), got)
			}
			if got := fmt.Sprint(j.at("spec", "template", "spec", "containers", 0, "args")); !strings.HasPrefix(got, "[migrate up --config=") {
				t.Errorf("%s runs %s", j.name(), got)
			}
			// What a hook needs must be a hook that comes before it.
			configMap := j.at("spec", "template", "spec", "volumes", 0, "configMap", "name")
			found := false
			for _, c := range ofKind(objects, "ConfigMap") {
				found = found || c.name() == configMap && c.at("metadata", "annotations", "helm.sh/hook") == "pre-install,pre-upgrade"
			}
			if !found {
				t.Errorf("%s mounts %v, which does not exist at its time", j.name(), configMap)
			}
		}
	})
}

func TestChart_ServicesAndRulesReachPods(t *testing.T) {
	t.Parallel()
	eachValues(t, func(t *testing.T, objects []object) {
		services := map[string]bool{}
		for _, s := range ofKind(objects, "Service") {
			services[s.name()] = true
			matched := false
			for _, d := range ofKind(objects, "Deployment") {
				if fmt.Sprint(d.at("spec", "selector", "matchLabels")) != fmt.Sprint(s.at("spec", "selector")) {
					continue
				}
				list, _ := d.at("spec", "template", "spec", "containers", 0, "ports").([]any)
				for _, p := range list {
					matched = matched || object(p.(map[string]any)).at("name") == s.at("spec", "ports", 0, "targetPort")
				}
			}
			if !matched {
				t.Errorf("service %s leads to no port", s.name())
			}
			if strings.HasSuffix(s.name(), "-internal") && s.at("spec", "type") != "ClusterIP" {
				t.Errorf("the internal feeds are of type %v", s.at("spec", "type"))
			}
		}
		for _, i := range ofKind(objects, "Ingress") {
			backend := fmt.Sprint(i.at("spec", "rules", 0, "http", "paths", 0, "backend", "service", "name"))
			if !services[backend] || strings.HasSuffix(backend, "-internal") {
				t.Errorf("ingress %s leads to %s", i.name(), backend)
			}
			if host := fmt.Sprint(i.at("spec", "rules", 0, "host")); !strings.HasSuffix(host, ".example.com") || strings.Contains(host, ":") {
				t.Errorf("ingress %s is for host %q", i.name(), host)
			}
		}
	})
}

func TestChart_RefusesWrongValues(t *testing.T) {
	t.Parallel()
	minimal := filepath.Join("versola", "ci", "minimal.yaml")
	for _, set := range []string{
		"auth.replica=3", "nothing=1", "auth.resources.limits.cpu=2", "auth.issuer=http://id.example.com", "auth.issuer=https://id.example.com/",
		"auth.issuer=", "auth.existingSecret=", "edge.publicURL=", "edge.publicURL=javascript:alert(1)", "edge.existingSecret=", "demo.enabled=true",
		"auth.otp.provider=fake", "image.digest=latest", "telemetry.sampleRatio=2", "auth.secretKeys.peper=x", "auth.trustedProxies={10.0.0.1}",
		"auth.enabled=false",
	} {
		if _, err := render(t, minimal, "--set", set); err == nil {
			t.Errorf("%s is accepted", set)
		}
	}
}

func TestChart_ValuesStayTexts(t *testing.T) {
	t.Parallel()
	// A value cannot break out of its place in the configuration.
	objects, err := render(t, filepath.Join("versola", "ci", "full.yaml"), "--set-json", `telemetry.otlpEndpoint="http://x/%\"\\:#{}"`)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range ofKind(objects, "ConfigMap") {
		data, _ := o.at("data").(map[string]any)
		for _, text := range data {
			var parsed map[string]any
			if err := yaml.Unmarshal([]byte(fmt.Sprint(text)), &parsed); err != nil {
				t.Fatal(err)
			}
			if got := object(parsed).at("telemetry", "otlp_endpoint"); got != `http://x/%"\:#{}` {
				t.Errorf("got %q", got)
			}
		}
	}
}
