import type { Socket } from "node:net";
import { createServer } from "node:tls";
import { TritonError } from "@tritonjs/core";

/** Certificates in PEM. */
type Pem = string | Buffer;

/** Encryption of connections. */
export interface TlsOptions {
  /** The certificate of the server, followed by those between it and a root. */
  readonly cert: Pem;
  /** The private key of the certificate. */
  readonly key: Pem;
  /** Roots of client certificates. With them, clients without such a certificate are refused: mutual TLS. */
  readonly ca?: Pem | Pem[];
}

/**
 * Takes bare connections, and hands those on whose handshake succeeds.
 *
 * @throws TritonError INVALID_ARG for certificates that are none, or do not fit the key.
 */
export function overTls(
  { cert, key, ca }: TlsOptions,
  accept: (socket: Socket) => void,
): (socket: Socket) => void {
  const server = createTlsServer();
  return (socket) => void server.emit("connection", socket);

  function createTlsServer() {
    const mutual = ca !== undefined;
    const options = { cert, key, ca, requestCert: mutual, rejectUnauthorized: mutual, ALPNProtocols: ["h2"] };
    try {
      return createServer(options, accept);
    } catch (cause) {
      throw new TritonError("INVALID_ARG", `invalid TLS certificate or key: ${(cause as Error).message}`, {
        reason: "INVALID_OPTION",
        cause,
      });
    }
  }
}
