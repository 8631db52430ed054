import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/*
 * Serves the models, and runs the command as a shell does.
 *
 *   npm start
 */

const here = fileURLToPath(new URL("..", import.meta.url));
const tritonjs = fileURLToPath(new URL("./main.js", import.meta.resolve("@tritonjs/cli")));

const server = spawn(
  process.execPath,
  [tritonjs, "serve", "--model-repository=../model-repository/models", "--http-address=127.0.0.1"].concat([
    "--http-port=0",
    "--allow-grpc=false",
    "--allow-metrics=false",
  ]),
  { cwd: here, stdio: ["ignore", "inherit", "pipe"] },
);
const ended = once(server, "exit");
const url = await urlOf(server);
server.stderr!.resume();

await flower("--url", url, "5.1", "3.5", "1.4", "0.2");
await flower("--url", url, "6.3", "3.3", "6.0", "2.5");
await flower("--url", url, "6.3", "3.3");

server.kill("SIGTERM");
await ended;

/** The URL of HTTP, once the server is ready. */
async function urlOf({ stderr }: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: stderr! })) {
    const [, address] = /Started HTTPService at ([\d.]+:\d+)/.exec(line) ?? [];
    if (address !== undefined) return `http://${address}`;
  }
  throw new Error("the server has ended");
}

async function flower(...options: readonly string[]): Promise<void> {
  console.log(`> flower ${options.slice(2).join(" ")}`);
  const command = spawn(process.execPath, ["dist/flower.js", ...options], {
    cwd: here,
    // Errors go where the answers go.
    stdio: ["ignore", process.stdout, process.stdout],
  });
  const [code] = await once(command, "exit");
  console.log(`exit code ${code}`);
}
