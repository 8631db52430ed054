import { lookup } from "node:dns/promises";
import { createServer, type Server, type Socket } from "node:net";
import { TritonError } from "@tritonjs/core";

/** Sockets that listen on every address of a host, at one port. */
export interface Listener {
  readonly port: number;
  /** Stops accepting. Connections that are open stay so. */
  close(): void;
  /** Cuts all connections off. */
  destroyConnections(): void;
}

/** Address families that a machine may lack while its resolver still names them. */
const SKIPPED: ReadonlySet<string | undefined> = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

/**
 * Listens on all addresses of `host` (`localhost` is 127.0.0.1 and ::1). Port 0 takes a free one.
 *
 * @throws TritonError UNAVAILABLE when the port is taken on any of them, or `host` is not of this machine.
 */
export async function listen(
  host: string,
  port: number,
  onConnection: (socket: Socket) => void,
): Promise<Listener> {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    onConnection(socket);
  };
  const close = (): void => servers.forEach((server) => void server.close());
  let bound = port;
  try {
    for (const { address } of await addresses(host)) {
      const server = await bind(address, bound, accept);
      if (server === undefined) continue;
      servers.push(server);
      bound = portOf(server);
    }
  } catch (error) {
    close();
    throw error;
  }
  if (servers.length === 0) throw new TritonError("UNAVAILABLE", `no address of ${host} can be listened on`);
  const destroyConnections = (): void => sockets.forEach((socket) => void socket.destroy());
  return { port: bound, close, destroyConnections };
}

async function addresses(host: string): Promise<readonly { address: string }[]> {
  try {
    return await lookup(host, { all: true });
  } catch (error) {
    throw new TritonError("UNAVAILABLE", `cannot find the address of ${host}`, { cause: error });
  }
}

/** A server that listens; undefined when the machine does not have this kind of address. */
function bind(
  host: string,
  port: number,
  onConnection: (socket: Socket) => void,
): Promise<Server | undefined> {
  const server = createServer({ noDelay: true }, onConnection);
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (SKIPPED.has(error.code)) resolve(undefined);
      else reject(bindError(error, host, port));
    });
    server.listen({ host, port }, () => resolve(server));
  });
}

function bindError(error: NodeJS.ErrnoException, host: string, port: number): TritonError {
  const message =
    error.code === "EADDRINUSE"
      ? `port ${port} is already in use: choose another with the option grpcPort (or grpc({ port }))`
      : `cannot listen on ${host}:${port}: ${error.message}`;
  return new TritonError("UNAVAILABLE", message, { cause: error });
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
