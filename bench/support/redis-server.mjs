import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Starts Redis (Debian: `redis-server`) on a Unix socket, with its data in memory alone. */
export async function startRedis() {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-redis-"));
  const path = join(folder, "socket");
  const args = ["--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no"];
  const child = spawn("redis-server", args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`redis-server ended with ${code}`)));
    createInterface(child.stdout).on(
      "line",
      (line) => /ready to accept connections/i.test(line) && resolve(),
    );
  });
  return {
    path,
    async stop() {
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}
