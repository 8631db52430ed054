import type { Socket } from "node:net";
import { createSecureContext, createServer } from "node:tls";
import { resolveTls, type TlsOptions } from "@tritonjs/core/frontend";

/**
 * Makes a listener for plain connections that passes them on after a successful TLS handshake.
 *
 * @throws TritonError INVALID_ARG if a certificate is invalid or does not match the key
 */
export function overTls(tls: TlsOptions, accept: (socket: Socket) => void): (socket: Socket) => void {
  const options = { ...resolveTls(tls, createSecureContext), ALPNProtocols: ["h2"] };
  const server = createServer(options, accept);
  return (socket) => void server.emit("connection", socket);
}
