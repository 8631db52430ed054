import { Triton } from "@tritonjs/core";
import { afterAll, beforeAll } from "vitest";
import { openGrpcJsServer } from "../support/grpc-js-server.js";
import { ALL_WAYS, type Client, type Way } from "./clients/client.js";
import { openClients, openGrpcClients } from "./clients/open-clients.js";
import { bindConformanceModels } from "./models.js";

/**
 * Serves the models while the tests of a file run, and returns a function that finds a client.
 *
 * @param frontendThreads threads that run the frontends
 */
export function openConformance(frontendThreads = 0): (way: Way) => Client {
  let triton: Triton;
  let clients: readonly Client[] = [];
  let closeServer = (): void => {};
  beforeAll(async () => {
    triton = new Triton({ httpPort: 0, grpcPort: 0, metricsPort: 0 });
    bindConformanceModels(triton);
    const { url, close } = await openGrpcJsServer(triton);
    closeServer = close;
    const served = await triton.serve({ frontendThreads });
    clients = [...openClients(triton, served), ...openGrpcClients(served, url)];
  });
  afterAll(async () => {
    for (const client of clients) client.close();
    await triton.close();
    closeServer();
  });
  return (way) => clients.find((client) => client.way === way)!;
}

/** All clients except those named. */
export function waysExcept(except: readonly Way[] = []): Way[] {
  return ALL_WAYS.filter((way) => !except.includes(way));
}
