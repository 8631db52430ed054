import { TritonError } from "@tritonjs/protocol";

/** A certificate or key in PEM. */
type Pem = string | Buffer;

/** Encryption of connections. */
export interface TlsOptions {
  /** The certificate of the server, followed by those between it and a root. */
  readonly cert: Pem;
  /** The private key of the certificate. */
  readonly key: Pem;
  /** Passphrase for an encrypted `key`. */
  readonly passphrase?: string;
  /** Roots of client certificates. With them, clients without such a certificate are refused: mutual TLS. */
  readonly ca?: Pem | Pem[];
  /** Whether clients are asked for a certificate; true with `ca` unless given. */
  readonly requestCert?: boolean;
  /** Whether clients whose certificate no root has signed are refused; as `requestCert` unless given. */
  readonly rejectUnauthorized?: boolean;
}

/** TLS options with nothing left open. */
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
    throw new TritonError("INVALID_ARG", `invalid TLS certificate or key: ${message}`, {
      reason: "INVALID_OPTION",
      cause,
    });
  }
  return { ...options, requestCert, rejectUnauthorized };
}
