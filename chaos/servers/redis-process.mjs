import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect, createServer } from "node:net";
import { delimiter, join } from "node:path";
import { until } from "../clock.mjs";

/** Path of Debian's Redis; undefined if it is not installed. */
export function findRedis() {
  return (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, "redis-server"))
    .find((path) => existsSync(path));
}

/** A Redis whose data are in memory alone, on a port that it keeps when it starts again. */
export class RedisProcess {
  #program;
  #folder;
  #port;
  #child;

  constructor(program, folder) {
    this.#program = program;
    this.#folder = folder;
  }

  get url() {
    return `redis://127.0.0.1:${this.#port}`;
  }

  async start() {
    this.#port ??= await freePort();
    const args = ["--port", String(this.#port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    this.#child = spawn(this.#program, args, { cwd: this.#folder, stdio: "ignore" });
    await until(() => this.#ask("PING").then(Boolean, () => false), "Redis to answer");
  }

  signal(name) {
    this.#child.kill(name);
  }

  async kill() {
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }

  /** Limits the memory of Redis; 0 removes the limit. Redis refuses writes beyond it. */
  async limitMemory(bytes) {
    await this.#ask(`CONFIG SET maxmemory ${bytes}`);
  }

  async #ask(command) {
    const socket = connect(this.#port, "127.0.0.1");
    try {
      await once(socket, "connect");
      socket.write(`${command}\r\n`);
      const [answer] = await once(socket, "data");
      return String(answer);
    } finally {
      socket.destroy();
    }
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}
