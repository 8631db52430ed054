import type { FrontendServer } from "@tritonjs/core/internal/server";
import type { InferenceService } from "./inference-service.js";
import { LocalService } from "./local-service.js";

/** What has the operations of the protocol: a `Triton`, the server that it gives its frontends, or a service itself. */
export type Served =
  | FrontendServer
  | { readonly server: FrontendServer }
  | { readonly service: InferenceService };

const services = new WeakMap<FrontendServer, LocalService>();

/**
 * The v2 operations over all models of a `Triton`, which all of its frontends share. They are made when they are first
 * asked for.
 *
 * @throws TritonError INVALID_ARG for options of the server that it cannot have
 * @example
 * ```ts
 * const { accessToken } = serviceOf(triton);
 * await serviceOf(triton).checkReady();
 * ```
 */
export function serviceOf(served: Served): InferenceService {
  if ("service" in served) return served.service;
  const server = "server" in served ? served.server : served;
  let service = services.get(server);
  if (service === undefined) {
    service = new LocalService(server);
    services.set(server, service);
  }
  return service;
}
