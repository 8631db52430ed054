import { type ChannelCredentials, credentials } from "@grpc/grpc-js";
import { TritonError } from "@tritonjs/protocol";
import type { ClientOptions } from "../client-options.js";

/** Address of a server, and credentials for connections to it. */
export interface ServerAddress {
  /** `localhost:8001`, or another target of grpc-js. */
  readonly target: string;
  readonly security: ChannelCredentials;
}

/** Port of an address that names none. */
export const DEFAULT_GRPC_PORT = 8001;

/**
 * Reads the address of a server: `localhost`, `localhost:8001`, `grpc://host:port`, `grpcs://host:port` for TLS, or a
 * target of grpc-js such as `unix:/path` or `ipv4:10.0.0.1:8001`.
 *
 * @throws TritonError INVALID_ARG for an invalid address or certificate.
 */
export function serverAddress(url: string, tls: ClientOptions["tls"]): ServerAddress {
  const [, scheme, rest] = /^(grpcs?):\/\/(.*)$/.exec(url) ?? [undefined, undefined, url];
  if (scheme === "grpc" && tls)
    throw invalid(`tls is given for '${url}', which is not encrypted: use grpcs://, or leave tls out`);
  if (rest === undefined || rest === "" || rest.includes("@") || /^https?:|\s/.test(rest)) {
    throw invalid(`invalid url '${url}': expected host:port`);
  }
  const target = rest.replace(/\/$/, "");
  const bare = /^(?:[^:/[\]]+|\[[0-9a-fA-F:.]+\])$/.test(target);
  return {
    target: bare ? `${target}:${DEFAULT_GRPC_PORT}` : target,
    security: channelCredentials(tls ?? scheme === "grpcs"),
  };
}

function channelCredentials(tls: NonNullable<ClientOptions["tls"]>): ChannelCredentials {
  if (tls === false) return credentials.createInsecure();
  const { ca, key, cert } = tls === true ? {} : tls;
  try {
    return credentials.createSsl(buffer(ca), buffer(key), buffer(cert));
  } catch (cause) {
    throw new TritonError("INVALID_ARG", `invalid TLS certificate or key: ${(cause as Error).message}`, {
      reason: "INVALID_OPTION",
      cause,
    });
  }
}

function buffer(pem: string | Buffer | undefined): Buffer | null {
  return typeof pem === "string" ? Buffer.from(pem) : (pem ?? null);
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_OPTION" });
}
