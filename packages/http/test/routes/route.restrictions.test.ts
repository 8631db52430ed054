import { ENDPOINT_GROUPS, type Restrictions } from "@tritonjs/core/frontend";
import type { EndpointGroup } from "@tritonjs/core/types";
import { describe, expect, it } from "vitest";
import { routes } from "../../src/routes/v2-handler.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

/** One path of each route, and its group in tritonserver. */
const paths: Readonly<Record<string, EndpointGroup>> = {
  "/v2/models/m/infer": "inference",
  "/v2/models/m/versions/1/generate": "inference",
  "/v2/models/m/generate_stream": "inference",
  "/v2/models/stats": "statistics",
  "/v2/models/m/stats": "statistics",
  "/v2/models/m/versions/1/stats": "statistics",
  "/v2/health/live": "health",
  "/v2/health/ready": "health",
  "/v2/models/m/ready": "health",
  "/v2": "metadata",
  "/v2/models/m": "metadata",
  "/v2/models/m/config": "model-config",
  "/v2/repository/index": "model-repository",
  "/v2/repository/r/index": "model-repository",
  "/v2/repository/models/m/load": "model-repository",
  "/v2/repository/models/m/unload": "model-repository",
  "/v2/repository/models/m/rollout": "model-repository",
  "/v2/systemsharedmemory/status": "shared-memory",
  "/v2/systemsharedmemory/region/r/register": "shared-memory",
  "/v2/systemsharedmemory/unregister": "shared-memory",
  "/v2/cudasharedmemory/region/r/status": "shared-memory",
  "/v2/cudasharedmemory/region/r/register": "shared-memory",
  "/v2/cudasharedmemory/region/r/unregister": "shared-memory",
  "/v2/trace/setting": "trace",
  "/v2/models/m/trace/setting": "trace",
  "/v2/logging": "logging",
};

const restrictions: Restrictions = Object.fromEntries(
  ENDPOINT_GROUPS.map((group) => [group, { header: `${group}-key`, value: "secret" }]),
);

const identity = () => new IdentityService(identityConfig("m", "INT32"));

describe("a restricted route", () => {
  it("exists in the test's table for every route", () => {
    for (const { path } of routes)
      expect(Object.keys(paths).filter((text) => path.test(text))).not.toEqual([]);
  });

  it.each(Object.entries(paths))("%s requires the header of %s for every method", async (path, group) => {
    const port = await startHttp(identity(), { restrictions });
    const others = Object.fromEntries(
      ENDPOINT_GROUPS.filter((other) => other !== group).map((other) => [`${other}-key`, "secret"]),
    );
    for (const method of ["GET", "POST", "DELETE"]) {
      for (const headers of [{}, { [`${group}-key`]: "Secret" }, others]) {
        const { status, text } = await send(port, { method, path, headers });
        expect([status, text]).toEqual([
          403,
          `{"error":"This API is restricted, expecting header '${group}-key'"}`,
        ]);
      }
      const { status } = await send(port, { method, path, headers: { [`${group}-key`]: "secret" } });
      expect(status).not.toBe(403);
    }
  });

  it("is restricted by the service unless the frontend has restrictions of its own", async () => {
    const service = Object.assign(identity(), { restrictions });
    const get = { method: "GET", path: "/v2/health/live" };
    expect(await send(await startHttp(service), get)).toMatchObject({ status: 403 });
    expect(await send(await startHttp(service, { restrictions: {} }), get)).toMatchObject({ status: 200 });
  });
});
