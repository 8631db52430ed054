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

/** The port, and whether others may listen on it too, which Node can from 22.12 on. */
export interface ListenAt {
  readonly port: number;
  readonly reusePort: boolean;
}

/** Address families that a machine may lack while its resolver still names them. */
const SKIPPED: ReadonlySet<string | undefined> = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

/** Hosts that mean every address of the machine, of IPv4 and IPv6 alike, as gRPC has it. */
const WILDCARDS: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/**
 * Listens on all addresses of `host` (`localhost` is 127.0.0.1 and ::1; 0.0.0.0 is every one of the machine, of IPv6
 * too where it has any). Port 0 takes a free one.
 *
 * @param onFault told of errors from then on, as of connections that cannot be accepted
 * @throws TritonError UNAVAILABLE when the port is taken on any of them, or `host` is not of this machine.
 */
export async function listen(
  host: string,
  at: ListenAt,
  onConnection: (socket: Socket) => void,
  onFault: (error: Error) => void,
): Promise<Listener> {
  const hosts = await addresses(host);
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    onConnection(socket);
  };
  let servers = await bindFreePort(hosts, at, accept);
  if (servers.length === 0 && WILDCARDS.has(host)) servers = await bindFreePort(["0.0.0.0"], at, accept);
  for (const server of servers) server.on("error", onFault);
  if (servers.length === 0)
    throw new TritonError("UNAVAILABLE", `cannot listen on ${host}: it has no usable address`, {
      reason: "LISTEN_FAILED",
    });
  return {
    port: portOf(servers[0]!),
    close: () => closeAll(servers),
    destroyConnections: () => sockets.forEach((socket) => void socket.destroy()),
  };
}

/** Tries to find one that is free on every address, when any port will do. */
const FREE_PORT_ATTEMPTS = 10;

async function bindFreePort(
  hosts: readonly string[],
  at: ListenAt,
  onConnection: (socket: Socket) => void,
): Promise<Server[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await bindAll(hosts, at, onConnection);
    } catch (error) {
      if (at.port !== 0 || attempt === FREE_PORT_ATTEMPTS) throw error;
    }
  }
}

/** Listens on all addresses: with port 0, the first one finds the port for the others. */
async function bindAll(
  hosts: readonly string[],
  at: ListenAt,
  onConnection: (socket: Socket) => void,
): Promise<Server[]> {
  const servers: Server[] = [];
  try {
    for (const host of hosts) {
      const port = servers.length > 0 ? portOf(servers[0]!) : at.port;
      const server = await bind({ ...at, host, port }, onConnection);
      if (server !== undefined) servers.push(server);
    }
    return servers;
  } catch (error) {
    closeAll(servers);
    throw error;
  }
}

function closeAll(servers: readonly Server[]): void {
  for (const server of servers) server.close();
}

async function addresses(host: string): Promise<string[]> {
  // A socket of IPv6's wildcard takes connections over IPv4 as well.
  if (WILDCARDS.has(host)) return ["::"];
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch (error) {
    throw new TritonError("UNAVAILABLE", `cannot listen on ${host}: its address is unknown`, {
      reason: "LISTEN_FAILED",
      cause: error,
    });
  }
}

/** A server that listens; undefined when the machine does not have this kind of address. */
function bind(
  options: ListenAt & { readonly host: string },
  onConnection: (socket: Socket) => void,
): Promise<Server | undefined> {
  const { host, port } = options;
  const server = createServer({ noDelay: true }, onConnection);
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (SKIPPED.has(error.code)) resolve(undefined);
      else reject(bindError(error, host, port));
    });
    try {
      server.listen(options, () => resolve(server));
    } catch (error) {
      reject(bindError(error as NodeJS.ErrnoException, host, port));
    }
  });
}

function bindError(error: NodeJS.ErrnoException, host: string, port: number): TritonError {
  const message =
    error.code === "EADDRINUSE"
      ? `port ${port} is already in use: choose another with the option grpcPort (or grpc({ port }))`
      : `cannot listen on ${host}:${port} (option grpcPort, or grpc({ port })): ${error.message}`;
  return new TritonError("UNAVAILABLE", message, { reason: "LISTEN_FAILED", cause: error });
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
