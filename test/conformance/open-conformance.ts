import { Triton } from "@tritonjs/core";
import { afterAll, beforeAll } from "vitest";
import { type Client, WAYS, type Way } from "./clients/client.js";
import { openClients } from "./clients/open-clients.js";
import { bindConformanceModels } from "./models.js";

/** Serves the models while the tests of a file run; the result finds the client of a way. */
export function openConformance(): (way: Way) => Client {
  let triton: Triton;
  let clients: readonly Client[] = [];
  beforeAll(async () => {
    triton = new Triton({ httpPort: 0, grpcPort: 0, metricsPort: 0 });
    bindConformanceModels(triton);
    clients = openClients(triton, await triton.serve());
  });
  afterAll(async () => {
    for (const client of clients) client.close();
    await triton.close();
  });
  return (way) => clients.find((client) => client.way === way)!;
}

/** The ways without those that cannot ask. */
export function waysExcept(except: readonly Way[] = []): Way[] {
  return WAYS.filter((way) => !except.includes(way));
}
