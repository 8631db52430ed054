import type { Triton } from "@tritonjs/core";
import { onTestFinished } from "vitest";
import type { Client } from "../../conformance/clients/client.js";
import { openClients, openGrpcClients } from "../../conformance/clients/open-clients.js";
import { openGrpcJsServer } from "../../support/grpc-js-server.js";

/** Serves, and opens a client for each way, until the end of the test. */
export async function connectAll(triton: Triton): Promise<Client[]> {
  const grpcJs = await openGrpcJsServer(triton);
  onTestFinished(grpcJs.close);
  const served = await triton.serve();
  const clients = [...openClients(triton, served), ...openGrpcClients(served, grpcJs.url)];
  onTestFinished(() => clients.forEach((client) => void client.close()));
  return clients;
}
