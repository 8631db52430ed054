import { TritonError } from "@tritonjs/protocol";

/** A certificate or key in PEM. */
type Pem = string | Buffer;

/** Options of encrypted connections. */
export interface TlsOptions {
  /** Certificate of the server, followed by the intermediate certificates. */
  readonly cert: Pem;
  /** Private key of the certificate. */
  readonly key: Pem;
  /** Passphrase for an encrypted `key`. */
  readonly passphrase?: string;
  /**
   * Root certificates for client certificates. With them, clients without a certificate signed by one are refused:
   * mutual TLS.
   */
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
    throw new TritonError("INVALID_ARG", `invalid TLS certificate or key: ${message}`, {
      reason: "INVALID_OPTION",
      cause,
    });
  }
  return { ...options, requestCert, rejectUnauthorized };
}
