import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../support/free-ports.js";
import { Program } from "../support/program.js";
import { programOf } from "./front-proxy.js";

/** Debian's Redis on a port that it keeps when it starts again. Its data live in memory alone. */
export class RedisServer implements AsyncDisposable {
  readonly url: string;
  readonly #port: number;
  readonly #folder = mkdtempSync(join(tmpdir(), "tritonjs-redis-"));
  #program: Program | undefined;

  private constructor(port: number) {
    this.#port = port;
    this.url = `redis://127.0.0.1:${port}`;
  }

  static async start(): Promise<RedisServer> {
    const [port] = await freePorts(1);
    const server = new RedisServer(port!);
    await server.startAgain();
    return server;
  }

  async startAgain(): Promise<void> {
    const args = ["--port", String(this.#port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    this.#program = new Program(programOf("redis-server")!, args, { cwd: this.#folder });
    await this.#program.untilOutput("Ready to accept connections");
  }

  /** Stops the process where it is: its connections stay open, and nothing is answered. */
  hang(): void {
    this.#program?.signal("SIGSTOP");
  }

  /** Lets a hanging process continue. */
  wake(): void {
    this.#program?.signal("SIGCONT");
  }

  async kill(): Promise<void> {
    this.#program?.signal("SIGKILL");
    await this.#program?.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true });
  }
}
