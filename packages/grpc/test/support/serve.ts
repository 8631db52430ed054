import { Server, ServerCredentials } from "@grpc/grpc-js";
import type { Frontend } from "@tritonjs/core";
import type { FrontendAddress, InferenceService } from "@tritonjs/server";
import { onTestFinished } from "vitest";
import { addV2Service, GRPC_DEFAULTS, type GrpcOptions, grpc } from "../../src/index.js";
import { GrpcClient } from "./grpc-client.js";
import { listening } from "./listening-server.js";
import { currentTransport } from "./over-each-transport.js";

/** The address of a served service, and the frontend to stop. */
interface Served {
  readonly address: FrontendAddress;
  readonly frontend: Pick<Frontend, "leave" | "settle" | "stop">;
}

/** Serves `service` on a free port until the end of the test, over the transport of the test. */
export async function serve(service: InferenceService, options: GrpcOptions = {}) {
  const open = currentTransport() === "http2" ? serveOnOwnPort : serveOnServer;
  const { address, frontend } = await open(service, options);
  const client = new GrpcClient(address.url);
  onTestFinished(async () => {
    client.close();
    await frontend.stop();
  });
  return { client, frontend, address };
}

async function serveOnOwnPort(service: InferenceService, options: GrpcOptions): Promise<Served> {
  const frontend = grpc({ port: 0, stopGraceMs: 0, ...options });
  return { frontend, address: await frontend.start({ service }) };
}

/** The limit on messages and the certificates belong to the program's own server: the methods cannot set them. */
async function serveOnServer(service: InferenceService, options: GrpcOptions): Promise<Served> {
  const { maxReceiveMessageSize = GRPC_DEFAULTS.maxReceiveMessageSize } = options;
  const server = new Server({ "grpc.max_receive_message_length": maxReceiveMessageSize });
  const { headerForwardPattern, restrictedProtocols, reflection } = options;
  const given = Object.entries({ headerForwardPattern, restrictedProtocols, reflection });
  addV2Service(server, { service }, Object.fromEntries(given.filter(([, value]) => value !== undefined)));
  const { url, port } = await listening(server, credentialsOf(options.tls));
  return {
    address: { host: "localhost", port, url },
    frontend: { stop: async () => server.forceShutdown() },
  };
}

function credentialsOf(tls: GrpcOptions["tls"]): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure();
  const { cert, key, ca } = tls;
  const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
  return ServerCredentials.createSsl(
    ca === undefined ? null : Buffer.from(String(ca)),
    [pair],
    ca !== undefined,
  );
}
