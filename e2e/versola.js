// Starts the built program in a folder of its own, with the demo tenant, and
// declares clients in it.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, chmodSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const program = process.env.PROGRAM;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

export async function start() {
  if (!program) throw new Error("PROGRAM names no built versola");
  const dir = mkdtempSync(join(tmpdir(), "versola-e2e-"));
  chmodSync(dir, 0o755); // as root, the database runs as another user
  const [auth, central, edge, bank, ops] = await Promise.all(Array.from({ length: 5 }, freePort));
  const issuer = `http://localhost:${auth}`;
  const env = {
    PATH: process.env.PATH, HOME: dir, VERSOLA_AUTH_LISTEN: `127.0.0.1:${auth}`, VERSOLA_AUTH_ISSUER: issuer,
    VERSOLA_CENTRAL_LISTEN: `127.0.0.1:${central}`, VERSOLA_EDGE_LISTEN: `127.0.0.1:${edge}`, VERSOLA_EDGE_PUBLIC_URL: `http://localhost:${edge}`,
    VERSOLA_DEMO_UPSTREAM_LISTEN: `127.0.0.1:${bank}`, VERSOLA_DIAGNOSTICS_AUTH: `127.0.0.1:${ops}`,
  };
  const log = join(dir, "log");
  const out = openSync(log, "w");
  const process_ = spawn(program, ["serve", "--role=all"], { cwd: dir, env, stdio: ["ignore", out, out] });
  const stop = async () => {
    if (process_.exitCode === null) {
      process_.kill("SIGTERM");
      await new Promise((done) => process_.once("exit", done));
    }
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    for (let tries = 0; ; tries++) {
      const ready = await fetch(`http://127.0.0.1:${ops}/readyz`).then((r) => r.ok, () => false);
      if (ready) break;
      if (process_.exitCode !== null || tries > 300) throw new Error(`not ready:\n${readFileSync(log, "utf8")}`);
      await pause(100);
    }
  } catch (e) {
    await stop();
    throw e;
  }
  return {
    issuer,
    stop,
    log: () => readFileSync(log, "utf8"),
    // declare puts documents beside those of the demo.
    async declare(documents) {
      const file = join(dir, "clients.yaml");
      writeFileSync(file, documents.map((d) => JSON.stringify(d)).join("\n---\n"));
      const done = spawnSync(program, ["apply", "-f", file], { cwd: dir, env, encoding: "utf8" });
      if (done.status !== 0) throw new Error(`apply: ${done.status}\n${done.stdout}${done.stderr}`);
      await pause(500); // a process hears of a change in a fifth of a second
    },
  };
}
