import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { afterAll, beforeAll } from "vitest";
import { ALL_WAYS, type Client, type Way } from "./clients/client.js";
import { openClients, openGrpcClients } from "./clients/open-clients.js";
import { bindConformanceModels } from "./models.js";

/** Serves the models while the tests of a file run, and returns a function that finds a client. */
export function openConformance(): (way: Way) => Client {
  let triton: Triton;
  let clients: readonly Client[] = [];
  const grpcJs = grpc({ port: 0, transport: "grpc-js" });
  beforeAll(async () => {
    triton = new Triton({ httpPort: 0, grpcPort: 0, metricsPort: 0 });
    bindConformanceModels(triton);
    const { url } = await grpcJs.start(triton.service);
    const served = await triton.serve();
    clients = [...openClients(triton, served), ...openGrpcClients(served, url)];
  });
  afterAll(async () => {
    for (const client of clients) client.close();
    await grpcJs.stop(0);
    await triton.close();
  });
  return (way) => clients.find((client) => client.way === way)!;
}

/** All clients except those named. */
export function waysExcept(except: readonly Way[] = []): Way[] {
  return ALL_WAYS.filter((way) => !except.includes(way));
}
