import { createSecureContext } from "node:tls";
import { TritonError } from "@tritonjs/core";

/** Certificates in PEM. */
type Pem = string | Buffer;

/** Encryption of connections. */
export interface TlsOptions {
  /** The certificate of the server, followed by those between it and a root. */
  readonly cert: Pem;
  /** The private key of the certificate. */
  readonly key: Pem;
  /** The words that open `key`, if it is encrypted. */
  readonly passphrase?: string;
  /** Roots of client certificates. With them, clients without such a certificate are refused: mutual TLS. */
  readonly ca?: Pem | Pem[];
  /** Whether clients are asked for a certificate; true with `ca` unless given. */
  readonly requestCert?: boolean;
  /** Whether clients whose certificate no root has signed are refused; as `requestCert` unless given. */
  readonly rejectUnauthorized?: boolean;
}

/** TLS options with nothing left open. */
export type ResolvedTlsOptions = TlsOptions & { requestCert: boolean; rejectUnauthorized: boolean };

/**
 * Fills in what was not given.
 *
 * @throws TritonError INVALID_ARG for certificates that are none, or do not fit the key.
 */
export function resolveTls(options: TlsOptions): ResolvedTlsOptions {
  const { requestCert = options.ca !== undefined } = options;
  const { rejectUnauthorized = requestCert } = options;
  try {
    createSecureContext(options as TlsOptions & { ca?: string | Buffer | (string | Buffer)[] });
  } catch (cause) {
    const { message } = cause as Error;
    throw new TritonError("INVALID_ARG", `invalid TLS certificate or key: ${message}`, {
      reason: "INVALID_OPTION",
      cause,
    });
  }
  return { ...options, requestCert, rejectUnauthorized };
}
