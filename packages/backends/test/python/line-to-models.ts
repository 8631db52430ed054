import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

let count = 0;

/** A socket that the processes of a test connect to, which detects when all of them are gone. */
export class ProcessConnections {
  readonly path = join(tmpdir(), `tritonjs-line-${process.pid}-${count++}`);
  readonly #server: Server;
  readonly #connections: Promise<void>[] = [];
  readonly #waiting: (() => void)[] = [];

  private constructor() {
    this.#server = createServer((socket: Socket) => {
      this.#connections.push(
        new Promise((resolve) => {
          socket.on("error", () => {});
          socket.on("close", () => resolve()).resume();
        }),
      );
      for (const look of this.#waiting) look();
    });
  }

  static async open(): Promise<ProcessConnections> {
    const line = new ProcessConnections();
    await new Promise<void>((resolve) => line.#server.listen(line.path, resolve));
    return line;
  }

  /** Resolves when this many processes have connected. */
  connected(processes: number): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.#connections.length >= processes) resolve();
      };
      this.#waiting.push(look);
      look();
    });
  }

  /** Resolves when all connections have closed. */
  async allGone(): Promise<void> {
    await Promise.all(this.#connections);
  }

  close(): void {
    this.#server.close();
  }
}
