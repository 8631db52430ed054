import { TritonError } from "@tritonjs/protocol";
import { readJson } from "../exchange/loop-turns.js";
import { emptyResponse, jsonResponse, type V2Response } from "../exchange/response.js";
import { asBytes, asUnsigned, find, type JsonValue } from "../json/json-value.js";
import { decodeText } from "../json/text.js";
import type { HttpExchange, Route } from "./route.js";

/** Regions of system and CUDA shared memory that clients register. */
export const sharedMemoryRoutes: readonly Route[] = [
  route("system", "status", "GET", ({ service, region }) =>
    jsonResponse(
      service.sharedMemory
        .systemStatus(region)
        .map(({ name, key, offset, byteSize }) => ({ name, key, offset, byte_size: byteSize })),
    ),
  ),
  route("system", "register", "POST", registerSystem),
  route("system", "unregister", "POST", ({ service, region }) => {
    service.sharedMemory.unregisterSystem(region);
    return emptyResponse(200, "application/json");
  }),
  route("cuda", "status", "GET", ({ service, region }) =>
    jsonResponse(
      service.sharedMemory
        .cudaStatus(region)
        .map(({ name, deviceId, byteSize }) => ({ name, device_id: deviceId, byte_size: byteSize })),
    ),
  ),
  route("cuda", "register", "POST", ({ service, region }) => {
    service.sharedMemory.checkAllowed();
    checkNamed("cuda", region);
    return service.sharedMemory.registerCuda(region);
  }),
  route("cuda", "unregister", "POST", ({ service, region }) => {
    service.sharedMemory.unregisterCuda(region);
    return emptyResponse(200, "application/json");
  }),
];

async function registerSystem({
  service: { sharedMemory },
  region,
  request,
  memory,
  maxInputSize,
}: HttpExchange): Promise<V2Response> {
  sharedMemory.checkAllowed();
  checkNamed("system", region);
  const range = await readJson(request, await request.readBody(memory, maxInputSize), (json) => {
    const offset = find(json, "offset");
    return {
      // Other names end at a NUL. A key does not: the shortened key would open another object than the client named.
      key: decodeText(asBytes(field(json, "key"))),
      offset: offset === undefined ? 0 : asUnsigned(offset),
      byteSize: asUnsigned(field(json, "byte_size")),
    };
  });
  await sharedMemory.registerSystem(region, range);
  return emptyResponse(200, "application/json");
}

function route(
  kind: "system" | "cuda",
  action: "status" | "register" | "unregister",
  method: "GET" | "POST",
  handle: Route["handle"],
): Route {
  return {
    path: new RegExp(`^/v2/${kind}sharedmemory(?:/region/(?<region>[^/]+))?/${action}$`),
    methods: [method],
    group: "shared-memory",
    errorType: "application/json",
    handle,
  };
}

function checkNamed(kind: string, region: string): void {
  if (region !== "") return;
  throw new TritonError(
    "INVALID_ARG",
    `'region name' is necessary to register ${kind} shared memory region`,
    { reason: "INVALID_REGION" },
  );
}

function field(json: JsonValue, name: string): JsonValue {
  const value = find(json, name);
  if (value !== undefined) return value;
  throw new TritonError("INVALID_ARG", `Shared memory register request has no '${name}' field`, {
    reason: "INVALID_REGION",
  });
}
