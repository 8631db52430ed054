import cluster from "node:cluster";
import { getSystemErrorName } from "node:util";
import { TritonError } from "@tritonjs/protocol";
import { type Koffi, type NativeLibrary, requireKoffi } from "../koffi.js";

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

/** Where to bind a socket. */
export interface SocketAddress {
  /** Address of IPv4 or IPv6. */
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
export function bindSocket(at: SocketAddress): number[] {
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
    throw new TritonError("UNSUPPORTED", "sharing a port needs Linux with this version of Node.js", {
      reason: "PLATFORM_NOT_SUPPORTED",
    });
  }
  // An address with a zone, such as fe80::1%eth0, needs the number of its interface.
  if (!isNeeded && (cluster.isWorker || host.includes("%"))) return undefined;
  try {
    return requireKoffi();
  } catch (cause) {
    if (!isNeeded) return undefined;
    throw new TritonError(
      "UNAVAILABLE",
      "sharing a port needs Node.js 22.12 or newer, or the package 'koffi': npm install koffi",
      { reason: "PACKAGE_NOT_INSTALLED", cause },
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
