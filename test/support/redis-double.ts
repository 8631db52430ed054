import { createServer, type Server, type Socket } from "node:net";

/** Reads the commands of a client: arrays of bulk strings (RESP). */
function* commandsOf(buffer: Buffer): Generator<{ args: Buffer[]; end: number }> {
  let at = 0;
  const line = () => {
    const end = buffer.indexOf("\r\n", at);
    if (end < 0) return undefined;
    const text = buffer.toString("latin1", at, end);
    at = end + 2;
    return text;
  };
  for (;;) {
    const head = line();
    if (head === undefined) return;
    const args: Buffer[] = [];
    for (let i = Number(head.slice(1)); i > 0; i--) {
      const size = Number(line()?.slice(1) ?? Number.NaN);
      if (Number.isNaN(size) || at + size + 2 > buffer.length) return;
      args.push(buffer.subarray(at, at + size));
      at += size + 2;
    }
    yield { args, end: at };
  }
}

/** A server for the part of Redis' protocol that a cache needs, which tests can make fail. */
export class RedisDouble {
  readonly entries = new Map<string, { value: Buffer; expiresMs: number | undefined }>();
  /** Answer to GET and SET instead of the normal one: an error text, or `silence` for none. */
  fault: string | undefined;
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();

  /** Listens on a free port and resolves with the URL. */
  async start(): Promise<string> {
    const server = createServer((socket) => this.#serve(socket));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `redis://127.0.0.1:${(server.address() as { port: number }).port}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    let rest = Buffer.alloc(0);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      let read = 0;
      for (const { args, end } of commandsOf(rest)) {
        read = end;
        const answer = this.#answer(args);
        if (answer !== undefined) socket.write(answer);
      }
      rest = rest.subarray(read);
    });
  }

  #answer([command, key, value, option, amount]: readonly Buffer[]): Buffer | string | undefined {
    const name = command!.toString().toUpperCase();
    if (name === "HELLO")
      return key?.toString() === "3" ? "%1\r\n$5\r\nproto\r\n:3\r\n" : "-NOPROTO unsupported\r\n";
    if (name !== "GET" && name !== "SET") return "+OK\r\n";
    if (this.fault === "silence") return undefined;
    if (this.fault !== undefined) return `-ERR ${this.fault}\r\n`;
    if (name === "SET") {
      const expiresMs = option?.toString().toUpperCase() === "PX" ? Number(amount) : undefined;
      this.entries.set(key!.toString(), { value: Buffer.from(value!), expiresMs });
      return "+OK\r\n";
    }
    const entry = this.entries.get(key!.toString());
    if (entry === undefined) return "_\r\n";
    return Buffer.concat([Buffer.from(`$${entry.value.length}\r\n`), entry.value, Buffer.from("\r\n")]);
  }
}
