import { closeSync } from "node:fs";
import { TritonError } from "@tritonjs/protocol";
import { bindSocket, type SocketAddress } from "./bound-socket.js";

/** The members of a Node server, such as `net.Server` and `http.Server`, that are needed to listen. */
export interface ListeningServer {
  listen(target: SocketAddress | { readonly fd: number }, onListening: () => void): unknown;
  once(event: "error", listener: (error: Error) => void): unknown;
  address(): { readonly port: number } | string | null;
  close(): unknown;
}

/** What one server listens on. */
type ListenTarget = SocketAddress | { readonly fd: number };

/** Where to listen. */
export interface ListenAt {
  /** Host name or address. */
  readonly address: string;
  readonly port: number;
  /** Whether other sockets may listen on the port too. Before Node 22.12 this needs Linux and the package koffi. */
  readonly reusePort: boolean;
  /** Whether 0.0.0.0 and :: both mean every address of the machine, IPv6 included. If not, each means only itself. */
  readonly joinsFamilies?: boolean;
  /** How to choose another port. Part of the error when this one is taken. */
  readonly portHint: string;
  /** Resolves the addresses of a host, as `lookup` of `node:dns/promises` does. */
  readonly lookup: (
    host: string,
    options: { readonly all: true },
  ) => Promise<readonly { readonly address: string }[]>;
}

/** Servers that listen on all addresses of a host, at one port. */
export interface Listening<S> {
  readonly port: number;
  /** The servers of all addresses, some for each. */
  readonly servers: readonly S[];
}

/** Error codes of address families that a machine may lack although its resolver returns them. */
const LACKING: ReadonlySet<string | undefined> = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);

const WILDCARDS: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** Number of attempts to find a port that is free on every address, for port 0. */
const FREE_PORT_ATTEMPTS = 10;

/**
 * Listens on all addresses of a host: `localhost` is 127.0.0.1 and often ::1. Port 0 takes any free port.
 *
 * @param open makes a server for an address; `first` is the server that already listens on the first address
 * @throws TritonError UNAVAILABLE if the port is taken on one of the addresses, or the host does not belong to this
 * machine
 */
export async function listenOnAll<S extends ListeningServer>(
  at: ListenAt,
  open: (first: S | undefined) => S,
): Promise<Listening<S>> {
  const { address, joinsFamilies = false } = at;
  if (!joinsFamilies || !WILDCARDS.has(address)) return bindFreePort(await addressesOf(at), at, open);
  // A socket of the IPv6 wildcard accepts connections over IPv4 too.
  return bindFreePort(["::"], at, open).catch((error) => {
    if (!isLacking((error as Error).cause)) throw error;
    return bindFreePort(["0.0.0.0"], at, open);
  });
}

async function addressesOf(at: ListenAt): Promise<string[]> {
  try {
    return (await at.lookup(at.address, { all: true })).map(({ address }) => address);
  } catch (cause) {
    throw listenError(cause, at);
  }
}

async function bindFreePort<S extends ListeningServer>(
  hosts: readonly string[],
  at: ListenAt,
  open: (first: S | undefined) => S,
): Promise<Listening<S>> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await bindAll(hosts, at, open);
    } catch (error) {
      const isTaken = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === "EADDRINUSE";
      if (at.port !== 0 || !isTaken || attempt === FREE_PORT_ATTEMPTS) throw error;
    }
  }
}

/** Listens on all addresses. With port 0, the first address determines the port of the others. */
async function bindAll<S extends ListeningServer>(
  hosts: readonly string[],
  at: ListenAt,
  open: (first: S | undefined) => S,
): Promise<Listening<S>> {
  const servers: S[] = [];
  let { port } = at;
  let lacking: unknown;
  try {
    for (const host of hosts) {
      try {
        const targets = targetsOf({ host, port, reusePort: at.reusePort });
        for (let target = targets.shift(); target !== undefined; target = targets.shift()) {
          const server = open(servers[0]);
          await listen(server, target).catch((error) => {
            server.close();
            for (const unused of targets) if ("fd" in unused) closeSync(unused.fd);
            throw error;
          });
          servers.push(server);
        }
      } catch (error) {
        if (!isLacking(error)) throw listenError(error, { ...at, port });
        lacking = error;
        continue;
      }
      port = portOf(servers.at(-1)!);
    }
    if (servers.length === 0) throw listenError(lacking, at);
    return { port, servers };
  } catch (error) {
    for (const server of servers) server.close();
    throw error;
  }
}

/** What servers listen on: descriptors of a bound socket, or an address that Node.js binds. */
function targetsOf(at: SocketAddress): ListenTarget[] {
  const descriptors = bindSocket(at);
  return descriptors.length === 0 ? [at] : descriptors.map((fd) => ({ fd }));
}

async function listen(server: ListeningServer, target: ListenTarget): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(target, resolve);
  });
}

function isLacking(error: unknown): boolean {
  return LACKING.has((error as NodeJS.ErrnoException | undefined)?.code);
}

function listenError(cause: unknown, { address, port, portHint }: ListenAt): TritonError {
  const { code, message } = (cause ?? {}) as NodeJS.ErrnoException;
  const text =
    code === "EADDRINUSE"
      ? `port ${port} is already in use: choose another with ${portHint}`
      : `cannot listen on ${address}:${port}: ${message ?? "the host has no address"}`;
  return new TritonError("UNAVAILABLE", text, { reason: "LISTEN_FAILED", cause });
}

function portOf(server: ListeningServer): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
