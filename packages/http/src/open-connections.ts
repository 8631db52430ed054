import type { Server } from "node:http";
import type { Socket } from "node:net";

/** The connections of a server, and how many requests each of them is busy with. */
export class OpenConnections {
  readonly #requests = new Map<Socket, number>();
  #closing = false;

  constructor(server: Server) {
    for (const event of ["connection", "secureConnection"]) {
      server.on(event, (socket: Socket) => this.#watch(socket));
    }
    server.on("request", ({ socket }, response) => {
      this.#requests.set(socket, (this.#requests.get(socket) ?? 0) + 1);
      response.once("close", () => this.#answered(socket));
    });
  }

  /** Ends connections on which no request is under way, now and from now on. */
  endIdle(): void {
    this.#closing = true;
    for (const [socket, requests] of this.#requests) if (requests === 0) socket.destroy();
  }

  /** Ends all connections. */
  endAll(): void {
    for (const socket of this.#requests.keys()) socket.destroy();
  }

  #watch(socket: Socket): void {
    this.#requests.set(socket, 0);
    socket.once("close", () => this.#requests.delete(socket));
  }

  #answered(socket: Socket): void {
    const requests = this.#requests.get(socket);
    if (requests === undefined) return;
    this.#requests.set(socket, requests - 1);
    // What has been written is sent before the connection ends.
    if (this.#closing && requests === 1) socket.destroySoon();
  }
}
