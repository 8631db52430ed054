import { readFileSync } from "node:fs";
import { connect as connectPlain, type NetConnectOpts, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Compression } from "@tritonjs/client/internal";
import type { Triton } from "@tritonjs/core";
import type { ParameterValue } from "@tritonjs/protocol";
import { invalidOption } from "../command/tool-errors.js";

/** Common to all targets of the v2 protocol. */
interface InferTargetOptions {
  readonly modelName: string;
  /** @default the version that the server chooses */
  readonly modelVersion?: string;
  /** Custom parameters of each request. */
  readonly parameters?: Readonly<Record<string, ParameterValue>>;
}

/** A server of the v2 protocol over a network. */
interface RemoteTargetOptions extends InferTargetOptions {
  /** `host:port`, or with a scheme. */
  readonly url: string;
  /** Headers, or metadata, of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Uses TLS. An address with `https://` does so without it. */
  readonly tls?: TlsSettings;
  /** Where tensors lie: in requests, or in regions of shared memory of this machine. @default "none" */
  readonly sharedMemory?: "none" | "system";
  /** Bytes of shared memory for each output. @default 102400 */
  readonly outputSharedMemorySize?: number;
}

/** A server of the v2 protocol over HTTP. */
export interface HttpTargetOptions extends RemoteTargetOptions {
  readonly kind: "http";
  /** Form of tensors in requests. @default "binary" */
  readonly inputTensorFormat?: "binary" | "json";
  /** Form of tensors in responses. @default "binary" */
  readonly outputTensorFormat?: "binary" | "json";
  readonly requestCompression?: Compression;
  readonly responseCompression?: Compression;
}

/** A server of the v2 protocol over gRPC. */
export interface GrpcTargetOptions extends RemoteTargetOptions {
  readonly kind: "grpc";
  /** Sends requests on streams. Decoupled models need it. @default false */
  readonly streaming?: boolean;
  readonly compression?: Compression;
}

/** A model in this process. */
export interface InProcessTargetOptions extends InferTargetOptions {
  readonly kind: "in-process";
  readonly source: { readonly triton: Triton };
}

/** An endpoint of OpenAI's API. */
export interface OpenAiTargetOptions {
  readonly kind: "openai";
  /** `http://host:port`; the endpoint is appended. */
  readonly url: string;
  /** `v1/chat/completions`, `v1/completions` or `v1/embeddings`. @default "v1/chat/completions" */
  readonly endpoint?: string;
  /** Sets `stream` in each request. @default false */
  readonly streaming?: boolean;
  /** Name for `model` in bodies that have none. */
  readonly modelName?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: TlsSettings;
}

/** Where requests go. */
export type TargetOptions =
  | HttpTargetOptions
  | GrpcTargetOptions
  | InProcessTargetOptions
  | OpenAiTargetOptions;

/** TLS of a connection: contents of PEM files. */
export interface TlsSettings {
  /** Certificates of the authorities. @default those of Node.js */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Accepts any certificate of the server. @default false */
  readonly acceptAny?: boolean;
}

/** Most connections of a thread. Further requests wait for one. */
export const MOST_CONNECTIONS = 4096;

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

const READ_BUFFER_BYTES = 32 * 1024;

/**
 * Opens a socket to an endpoint. Plain sockets read into one buffer, without an allocation for each read.
 *
 * @param onBytes is called with bytes that are valid only during the call
 * @param onClose is called once, at the end, with a text for the requests in flight. The error is undefined if the server
 * closed the connection in order.
 */
export function openSocket(
  endpoint: Endpoint,
  onBytes: (bytes: Buffer) => void,
  onClose: (text: string, error: Error | undefined) => void,
  protocols?: readonly string[],
): Socket {
  const { tls } = endpoint;
  const socket = tls === undefined ? plainSocket(endpoint, onBytes) : tlsSocket(endpoint, tls, protocols);
  if (tls !== undefined) socket.on("data", onBytes);
  let error: Error | undefined;
  let wasConnected = false;
  socket.setNoDelay(true);
  socket.once(tls === undefined ? "connect" : "secureConnect", () => {
    wasConnected = true;
  });
  socket.once("error", (cause) => {
    error = cause;
  });
  socket.once("end", () => socket.destroy());
  socket.once("close", () => onClose(connectionText(endpoint, wasConnected, error), error));
  return socket;
}

function plainSocket({ host, port }: Endpoint, onBytes: (bytes: Buffer) => void): Socket {
  const buffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
  const onread: NetConnectOpts["onread"] = {
    buffer,
    callback(length) {
      onBytes(buffer.subarray(0, length));
      return true;
    },
  };
  return connectPlain({ host, port, onread });
}

function tlsSocket({ host, port }: Endpoint, tls: TlsSettings, protocols: readonly string[] = []): Socket {
  const { ca, cert, key, acceptAny = false } = tls;
  const servername = /^[\d.]+$|:/.test(host) ? undefined : host;
  const ALPNProtocols = protocols.length === 0 ? undefined : [...protocols];
  const rejectUnauthorized = !acceptAny;
  return connectTls({ host, port, ca, cert, key, servername, ALPNProtocols, rejectUnauthorized });
}

function connectionText(endpoint: Endpoint, wasConnected: boolean, error: Error | undefined): string {
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
