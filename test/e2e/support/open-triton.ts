import { Triton } from "@tritonjs/core";
import type { RequestHandle } from "@tritonjs/core/internal";
import { serviceOf } from "@tritonjs/server";
import { onTestFinished, vi } from "vitest";
import type { Client } from "../../conformance/clients/client.js";
import { openClients } from "../../conformance/clients/open-clients.js";
import { type ServedOptions, servedOptions } from "../../support/served-options.js";

/** A Triton on free ports without restrictions, closed after the test. */
export function openTriton(options: ServedOptions = {}): Triton {
  const security = { restrictedEndpoints: [] };
  const triton = new Triton(
    servedOptions({ httpPort: 0, grpcPort: 0, metricsPort: 0, security, ...options }),
  );
  onTestFinished(() => triton.close());
  return triton;
}

/** Serves and opens all clients. */
export async function serveAndConnect(triton: Triton): Promise<Client[]> {
  const clients = openClients(triton, await triton.serve());
  onTestFinished(() => clients.forEach((client) => void client.close()));
  return clients;
}

/** Calls `listener` with each request that a model accepts from a frontend. In-process calls do not count. */
export function onSent(triton: Triton, listener: (request: RequestHandle) => void): void {
  const service = serviceOf(triton);
  const lookUp = service.model.bind(service);
  vi.spyOn(service, "model").mockImplementation((name, version) => {
    const model = lookUp(name, version);
    const { config, labels, directory, requests } = model;
    return {
      name,
      version: model.version,
      config,
      labels,
      directory,
      requests,
      get inService() {
        return model.inService;
      },
      infer(request) {
        const sent = model.infer(request);
        listener(sent);
        return sent;
      },
    };
  });
}

/** Resolves when `happened()` is true, checking once in every turn of the event loop. */
export async function until(happened: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await happened())) await new Promise((resolve) => setImmediate(resolve));
}

/** Number of waiting requests, from the metrics page. */
export async function pendingRequests(triton: Triton, model: string): Promise<number> {
  const name = "nv_inference_pending_request_count";
  const line = new RegExp(`^${name}\\{model="${model}",version="1"\\} (\\d+)$`, "m");
  return Number(line.exec(await serviceOf(triton).metrics())?.[1]);
}
