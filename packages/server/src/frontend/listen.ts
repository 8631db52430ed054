import cluster from "node:cluster";
import { closeSync } from "node:fs";
import { getSystemErrorName } from "node:util";
import { type Koffi, type NativeLibrary, requireKoffi } from "@tritonjs/core/internal/server";
import { errorFor, type TritonError } from "@tritonjs/protocol";

/** The members of a Node server, such as `net.Server` and `http.Server`, that are needed to listen. */
export interface ListeningServer {
  listen(target: SocketAddress | { readonly fd: number }, onListening: () => void): unknown;
  once(event: "error", listener: (error: Error) => void): unknown;
  address(): { readonly port: number } | string | null;
  close(): unknown;
}

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

/** The places where servers listen: descriptors of a bound socket, or an address that Node.js binds. */
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
  return errorFor("LISTEN_FAILED", text, { cause });
}

function portOf(server: ListeningServer): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/*
 * Numbers of Linux.
 */
const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_STREAM = 1;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_REUSEPORT = 15;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;

/** Bytes of a socket address, and the offset of the host in it. */
const ADDRESS = { [AF_INET]: { size: 16, host: 4 }, [AF_INET6]: { size: 28, host: 8 } } as const;

/** True if Node.js itself can share a port: from 22.12 and 23.1 on. */
function nodeSharesPorts(version = process.versions.node): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
}

/** True if several sockets of this process can listen on one port, and share its connections. */
export function canSharePorts(): boolean {
  if (process.platform === "win32" || process.platform === "darwin") return false;
  if (nodeSharesPorts()) return true;
  if (process.platform !== "linux") return false;
  try {
    requireKoffi();
    return true;
  } catch {
    return false;
  }
}

/**
 * Descriptors of a port. In a turn of the event loop, libuv accepts one connection for each of them. With a single one,
 * 64 clients that connect together wait for 64 turns, which are long when large tensors are read.
 */
const DESCRIPTORS = 8;

interface SocketAddress {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Whether other sockets may listen on the port too. */
  readonly reusePort: boolean;
}

/**
 * Binds a socket, and makes further descriptors of it. A server listens with each of them.
 *
 * @returns none if Node.js has to bind the socket itself: on systems other than Linux, without the package koffi, and in
 * workers of `node:cluster`, which share the sockets of their primary. Fewer when the process has no more descriptors.
 * @throws the error of the system with its `code` if the address cannot be bound. For a port to share that Node.js
 * itself cannot share, TritonError UNAVAILABLE without koffi, UNSUPPORTED on systems other than Linux.
 */
function bindSocket(at: SocketAddress): number[] {
  const koffi = usableKoffi(at);
  if (koffi === undefined) return [];
  const library = koffi.load(null);
  const duplicate = library.func("int dup(int fd)");
  const descriptors = [bindFirst(koffi, library, at)];
  while (descriptors.length < DESCRIPTORS) {
    const further = duplicate(descriptors[0]);
    if (further < 0) break;
    descriptors.push(further);
  }
  return descriptors;
}

/** koffi, if the socket is to be bound with it. */
function usableKoffi({ host, reusePort }: SocketAddress): Koffi | undefined {
  const isNeeded = reusePort && !nodeSharesPorts();
  if (process.platform !== "linux") {
    if (!isNeeded) return undefined;
    throw errorFor("PLATFORM_NOT_SUPPORTED", "sharing a port needs Linux with this version of Node.js");
  }
  // An address with a zone, such as fe80::1%eth0, needs the number of its interface.
  if (!isNeeded && (cluster.isWorker || host.includes("%"))) return undefined;
  try {
    return requireKoffi();
  } catch (cause) {
    if (!isNeeded) return undefined;
    throw errorFor(
      "PACKAGE_NOT_INSTALLED",
      "sharing a port needs Node.js 22.12 or newer, or the package 'koffi': npm install koffi",
      { cause },
    );
  }
}

function bindFirst(koffi: Koffi, library: NativeLibrary, { host, port, reusePort }: SocketAddress): number {
  const socket = library.func("int socket(int domain, int type, int protocol)");
  const setOption = library.func(
    "int setsockopt(int fd, int level, int name, const void *value, uint32_t size)",
  );
  const readAddress = library.func("int inet_pton(int family, const char *text, void *into)");
  const bind = library.func("int bind(int fd, const void *address, uint32_t size)");
  const close = library.func("int close(int fd)");

  const family = host.includes(":") ? AF_INET6 : AF_INET;
  const { size, host: at } = ADDRESS[family];
  const address = Buffer.alloc(size);
  address.writeUInt16LE(family, 0);
  address.writeUInt16BE(port, 2);
  readAddress(family, host, address.subarray(at));

  const check = (result: number, call: string): number => {
    if (result >= 0) return result;
    const code = getSystemErrorName(-koffi.errno());
    throw Object.assign(new Error(`${call} ${code} ${host}:${port}`), { code });
  };
  const descriptor = check(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
  const set = (level: number, name: number, value: number): void => {
    const bytes = new Uint8Array(Int32Array.of(value).buffer);
    check(setOption(descriptor, level, name, bytes, bytes.length), "setsockopt");
  };
  try {
    set(SOL_SOCKET, SO_REUSEADDR, 1);
    if (reusePort) set(SOL_SOCKET, SO_REUSEPORT, 1);
    if (family === AF_INET6) set(IPPROTO_IPV6, IPV6_V6ONLY, 0);
    check(bind(descriptor, address, size), "bind");
  } catch (error) {
    close(descriptor);
    throw error;
  }
  return descriptor;
}

type Pem = string | Buffer;

/** Options of encrypted connections. */
export interface TlsOptions {
  /** Certificate of the server, followed by the intermediate certificates. */
  readonly cert: Pem;
  /** Private key of the certificate. */
  readonly key: Pem;
  /** Passphrase for an encrypted `key`. */
  readonly passphrase?: string;
  /** Root certificates for client certificates. Clients without one that they sign are refused: mutual TLS. */
  readonly ca?: Pem | Pem[];
  /** Whether clients are asked for a certificate. @default true with `ca` */
  readonly requestCert?: boolean;
  /** Whether clients without a certificate signed by a root are refused. @default the value of `requestCert` */
  readonly rejectUnauthorized?: boolean;
}

/** TLS options with all defaults filled in. */
export type ResolvedTlsOptions = TlsOptions & {
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
};

/**
 * Fills in the defaults, and checks the certificates.
 *
 * @param createSecureContext that of `node:tls`
 * @throws TritonError INVALID_ARG if a certificate is invalid or does not match the key
 */
export function resolveTls(
  options: TlsOptions,
  createSecureContext: (options: TlsOptions) => unknown,
): ResolvedTlsOptions {
  const { requestCert = options.ca !== undefined } = options;
  const { rejectUnauthorized = requestCert } = options;
  try {
    createSecureContext(options);
  } catch (cause) {
    const { message } = cause as Error;
    throw errorFor("INVALID_OPTION", `invalid TLS certificate or key: ${message}`, { cause });
  }
  return { ...options, requestCert, rejectUnauthorized };
}
