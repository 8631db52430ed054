import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** A port in front of another one. `kill` does what the death of a process does: connections break, new ones fail. */
export class TcpProxy {
  #server: Server | undefined;
  #port = 0;
  readonly #sockets = new Set<Socket>();

  private constructor(private readonly target: number) {}

  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await proxy.listen();
    onTestFinished(() => proxy.kill());
    return proxy;
  }

  get port(): number {
    return this.#port;
  }

  /** Listens again on the same port. */
  async listen(): Promise<void> {
    const server = createServer((socket) => {
      const onward = connect(this.target, "127.0.0.1");
      for (const [one, other] of [
        [socket, onward],
        [onward, socket],
      ] as const) {
        this.#sockets.add(one);
        one.pipe(other);
        one.on("error", () => {});
        one.on("close", () => {
          this.#sockets.delete(one);
          other.destroy();
        });
      }
    });
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as { port: number }).port;
    this.#server = server;
  }

  async kill(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = once(server, "close");
    server.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await closed;
  }
}
