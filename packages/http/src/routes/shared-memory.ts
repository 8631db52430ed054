import { TritonError } from "@tritonjs/core";
import { sharedMemoryDisabled } from "../decode/shared-memory.js";
import { jsonResponse } from "../exchange/response.js";
import type { Route } from "./route.js";

/** Shared memory of clients, which is not allowed: there are no regions, and none can be registered. */
export const sharedMemoryRoutes: readonly Route[] = ["system", "cuda"].flatMap((kind) => [
  {
    path: new RegExp(`^/v2/${kind}sharedmemory(?:/region/(?<region>[^/]+))?/status$`),
    methods: ["GET"],
    group: "shared-memory",
    errorType: "application/json",
    handle({ region }) {
      if (region !== "") {
        throw new TritonError("NOT_FOUND", `Unable to find ${kind} shared memory region: '${region}'`);
      }
      return jsonResponse([]);
    },
  } satisfies Route,
  {
    path: new RegExp(`^/v2/${kind}sharedmemory(?:/region/(?<region>[^/]+))?/(?:register|unregister)$`),
    methods: ["POST"],
    group: "shared-memory",
    errorType: "application/json",
    handle() {
      throw sharedMemoryDisabled();
    },
  } satisfies Route,
]);
