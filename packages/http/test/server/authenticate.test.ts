import { Authentication } from "@tritonjs/core/frontend";
import type { Authenticate, AuthenticationRequest } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";
import { describe, expect, it, onTestFinished } from "vitest";
import { type HttpOptions, http, metrics } from "../../src/index.js";
import { routes } from "../../src/routes/v2-handler.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { oneConnection, send } from "../support/send.js";

const infer = {
  path: "/v2/models/m/infer?trace=1",
  body: '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}',
};
const authorized = { authorization: "Bearer secret" };

const bearer: Authenticate = ({ headers }) => {
  const sent = headers.get("authorization");
  if (sent === null) {
    throw new TritonError("UNAVAILABLE", "a token is required", { reason: "UNAUTHENTICATED" });
  }
  if (sent !== "Bearer secret") {
    throw new TritonError("UNAVAILABLE", "this token may not infer", { reason: "PERMISSION_DENIED" });
  }
};

/** A server with a hook; `said` receives what it logs. */
async function serve(
  authenticate: Authenticate,
  options: ConstructorParameters<typeof Authentication>[1] = {},
  http_: HttpOptions = {},
  open: typeof http | typeof metrics = http,
) {
  const said: string[] = [];
  const service = new IdentityService(identityConfig("m", "INT32"));
  const authentication = new Authentication(authenticate, options, { error: (line) => said.push(line) });
  const frontend = open({ port: 0, ...http_ });
  const { port } = await frontend.start(Object.assign(service, { authentication }));
  onTestFinished(() => frontend.stop());
  return { port, said, service };
}

describe("the authentication hook over HTTP", () => {
  it("refuses with 401 and a challenge, with 403, or lets the request through, on one connection", async () => {
    const { port, service } = await serve(bearer);
    const agent = oneConnection();
    onTestFinished(() => agent.destroy());
    const missing = await send(port, { ...infer, agent });
    expect([missing.status, missing.text]).toEqual([401, '{"error":"a token is required"}']);
    expect(missing.headers["www-authenticate"]).toBe("Bearer");
    const wrong = await send(port, { ...infer, headers: { authorization: "Bearer other" }, agent });
    expect([wrong.status, wrong.text]).toEqual([403, '{"error":"this token may not infer"}']);
    expect(wrong.headers["www-authenticate"]).toBeUndefined();
    expect(service.requests).toEqual([]);
    expect((await send(port, { ...infer, headers: authorized, agent })).status).toBe(200);
    expect((await send(port, { ...infer, agent })).status).toBe(401);
  });

  it("gets the method, the path, the group, the headers and the address", async () => {
    const seen: AuthenticationRequest[] = [];
    const { port } = await serve((request) => void seen.push(request));
    await send(port, { ...infer, headers: { "X-Key": "a" } });
    expect(seen).toHaveLength(1);
    const { headers, remoteAddress, ...rest } = seen[0]!;
    expect(rest).toEqual({
      transport: "http",
      method: "POST",
      path: "/v2/models/m/infer",
      group: "inference",
    });
    expect(headers.get("x-key")).toBe("a");
    expect(remoteAddress).toMatch(/^(127\.0\.0\.1|::1|::ffff:127\.0\.0\.1)$/);
  });

  it("is asked for every route but the public ones", async () => {
    const groups = new Set(routes.map(({ group }) => group));
    const asked = new Set<string>();
    const { port } = await serve(({ group }) => {
      asked.add(group);
      throw new TritonError("UNAVAILABLE", "no", { reason: "UNAUTHENTICATED" });
    });
    const statusOf = async (path: string) => (await send(port, { method: "GET", path })).status;
    expect(await statusOf("/v2/health/live")).toBe(200);
    for (const path of ["", "/models/m/infer", "/models/m/config", "/models/stats", "/repository/index"])
      expect(await statusOf(`/v2${path}`)).toBe(401);
    for (const path of ["/systemsharedmemory/status", "/trace/setting", "/logging"])
      expect(await statusOf(`/v2${path}`)).toBe(401);
    groups.delete("health");
    expect(asked).toEqual(groups);
  });

  it("is asked for health too if no group is public", async () => {
    const { port } = await serve(bearer, { publicEndpoints: [], challenge: 'Basic realm="models"' });
    const { status, headers } = await send(port, { method: "GET", path: "/v2/health/live" });
    expect([status, headers["www-authenticate"]]).toEqual([401, 'Basic realm="models"']);
  });

  it.each([http, metrics])("guards the metrics page, on either port", async (open) => {
    const { port } = await serve(bearer, {}, open === http ? { metrics: true } : {}, open);
    const page = { method: "GET", path: "/metrics" };
    expect((await send(port, page)).status).toBe(401);
    expect(await send(port, { ...page, headers: authorized })).toMatchObject({
      status: 200,
      text: "nv_up 1\n",
    });
    const options = open === http ? { metrics: true } : {};
    const opened = await serve(bearer, { publicEndpoints: ["metrics"] }, options, open);
    expect((await send(opened.port, page)).status).toBe(200);
  });

  it("answers the status of another TritonError", async () => {
    const { port } = await serve(async () => {
      throw new TritonError("UNAVAILABLE", "the directory is down", { retryAfterMs: 1500 });
    });
    const { status, text, headers } = await send(port, infer);
    expect([status, text, headers["retry-after"]]).toEqual([503, '{"error":"the directory is down"}', "2"]);
  });

  it("answers 500 without the text of any other error, and logs it", async () => {
    const { port, said } = await serve(async () => {
      throw new Error("password of the directory: hunter2");
    });
    const { status, text } = await send(port, infer);
    expect([status, text]).toEqual([500, '{"error":"internal error"}']);
    expect(said.join()).toContain(
      "security.authenticate failed for POST /v2/models/m/infer: Error: password",
    );
  });

  it("refuses with false", async () => {
    const { port } = await serve((() => false) as unknown as Authenticate);
    expect(await send(port, infer)).toMatchObject({ status: 403, text: '{"error":"access denied"}' });
  });

  it("refuses before the body arrives, and goes on with the connection's next request", async () => {
    const { port, service } = await serve(bearer);
    const agent = oneConnection();
    onTestFinished(() => agent.destroy());
    const body = Buffer.alloc(1 << 20, " ");
    expect((await send(port, { ...infer, body, agent })).status).toBe(401);
    expect(service.requestMemory.usedBytes).toBe(0);
    expect((await send(port, { ...infer, headers: authorized, agent })).status).toBe(200);
  });

  it("rejects unknown public groups", () => {
    const options = { publicEndpoints: ["helth"] as never };
    expect(() => new Authentication(bearer, options, { error() {} })).toThrow(
      /Invalid endpoint names: helth/,
    );
  });
});
