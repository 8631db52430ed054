import { readFileSync } from "node:fs";
import { connect as connectPlain, type NetConnectOpts, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { invalidOption } from "../data/invalid-option.js";

/** TLS of a connection: contents of PEM files. */
export interface TlsSettings {
  /** Certificates of the authorities. @default those of Node.js */
  readonly ca?: string;
  /** Certificate and key of this client. */
  readonly cert?: string;
  readonly key?: string;
  /** Accepts any certificate of the server. @default false */
  readonly acceptAny?: boolean;
}

/** Where a server listens. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  /** Path in front of the server's paths: `/`, or `/prefix/`. */
  readonly basePath: string;
  readonly tls?: TlsSettings;
}

/** Reads the PEM files of TLS options. @throws TritonError INVALID_ARG for a file that cannot be read. */
export function readPem(option: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw invalidOption(
      `${option}: expected a PEM file, cannot read '${path}': ${(cause as Error).message}`,
      cause,
    );
  }
}

/**
 * The endpoint of an address: `localhost:8000`, `https://host/prefix`.
 *
 * @throws TritonError INVALID_ARG for an invalid address.
 */
export function endpointOf(
  url: string,
  { defaultPort, schemes, tls }: { defaultPort: number; schemes: readonly string[]; tls?: TlsSettings },
): Endpoint {
  const isBare = !/^[a-z][a-z0-9+.-]*:\/\//i.test(url);
  let parsed: URL;
  try {
    parsed = new URL(isBare ? `${schemes[0]}://${url}` : url);
  } catch (cause) {
    throw invalidOption(`-u: expected an address as host:port, got '${url}'`, cause);
  }
  const scheme = parsed.protocol.slice(0, -1);
  if (!schemes.includes(scheme))
    throw invalidOption(
      `-u: expected ${schemes.map((one) => `${one}://`).join(" or ")} or host:port, got '${url}'`,
    );
  const isSecure = scheme.endsWith("s") || (isBare && tls !== undefined);
  // URL drops the default port of its scheme.
  const explicitPort = /^(?:[a-z+.-]+:\/\/)?(?:\[[^\]]*\]|[^/:]*):(\d+)/i.exec(url)?.[1];
  const port = explicitPort ?? (isBare ? defaultPort : scheme === "http" ? 80 : isSecure ? 443 : defaultPort);
  return {
    host: parsed.hostname.replace(/^\[|\]$/g, ""),
    port: Number(port),
    basePath: `${parsed.pathname.replace(/\/+$/, "")}/`,
    tls: isSecure ? (tls ?? {}) : undefined,
  };
}

/** `host:port`, as in the header `host`. */
export const authorityOf = ({ host, port }: Endpoint): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`;

/** What a connection tells of its socket. */
export interface SocketEvents {
  onConnect(): void;
  /** Bytes that are valid only during the call. */
  onBytes(bytes: Buffer): void;
  /** Called once, at the end. `error` is undefined if the server closed the connection in order. */
  onClose(error: Error | undefined): void;
}

const READ_BUFFER_BYTES = 32 * 1024;

/** Opens a socket to an endpoint. Plain sockets read into one buffer, without an allocation for each read. */
export function openSocket(endpoint: Endpoint, events: SocketEvents, protocols?: readonly string[]): Socket {
  const { host, port, tls } = endpoint;
  const socket =
    tls === undefined ? plainSocket(endpoint, events) : tlsSocket(tls, host, port, events, protocols);
  let error: Error | undefined;
  socket.setNoDelay(true);
  socket.once("error", (cause) => {
    error = cause;
  });
  socket.once("end", () => socket.destroy());
  socket.once("close", () => events.onClose(error));
  return socket;
}

function plainSocket({ host, port }: Endpoint, events: SocketEvents): Socket {
  const buffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
  const onread: NetConnectOpts["onread"] = {
    buffer,
    callback(length) {
      events.onBytes(buffer.subarray(0, length));
      return true;
    },
  };
  return connectPlain({ host, port, onread }).once("connect", () => events.onConnect());
}

function tlsSocket(
  { ca, cert, key, acceptAny = false }: TlsSettings,
  host: string,
  port: number,
  events: SocketEvents,
  protocols: readonly string[] | undefined,
): Socket {
  const servername = /^[\d.]+$|:/.test(host) ? undefined : host;
  const ALPNProtocols = protocols === undefined ? undefined : [...protocols];
  const rejectUnauthorized = !acceptAny;
  const socket = connectTls({ host, port, ca, cert, key, servername, ALPNProtocols, rejectUnauthorized });
  socket.once("secureConnect", () => events.onConnect());
  socket.on("data", (bytes: Buffer) => events.onBytes(bytes));
  return socket;
}

/** Text of a failed or lost connection. */
export function connectionText(endpoint: Endpoint, wasConnected: boolean, error: Error | undefined): string {
  const place = authorityOf(endpoint);
  const why = error === undefined ? "the server closed it" : causeText(error);
  return wasConnected ? `connection to ${place} lost: ${why}` : `cannot connect to ${place}: ${why}`;
}

/** With several addresses of one host, Node gives an AggregateError without a text. */
function causeText(error: Error): string {
  const [first] = error instanceof AggregateError ? (error.errors as Error[]) : [error];
  const { message, code } = first as NodeJS.ErrnoException;
  return message || code || String(first);
}
