import type { ManagementRequest, ManagementRoute } from "@tritonjs/core/extension";
import { TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { openApiDocument } from "../../src/index.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const recent: ManagementRoute = {
  path: "models/{model}/recent",
  group: "statistics",
  maxBodyBytes: 100,
  get: { id: "recentRequests", summary: "The last requests", run: ({ names }) => names },
  post: {
    id: "forgetRequests",
    summary: "Forgets requests",
    body: { type: "object" },
    run: ({ body }: ManagementRequest) => {
      if (body.fails === true) throw new TritonError("NOT_FOUND", "nothing to forget");
      return body.file === true ? Uint8Array.of(1, 2) : undefined;
    },
  },
};

const start = (options = {}) =>
  startHttp(
    Object.assign(new IdentityService(identityConfig("m", "INT32")), { management: [recent] }),
    options,
  );

describe("a route of an extension", () => {
  it("gets the decoded parts of the path, and answers with JSON", async () => {
    const answer = await send(await start(), { method: "GET", path: "/v2/models/a%20b/recent" });
    expect([answer.status, answer.text]).toEqual([200, '{"model":"a b"}']);
  });

  it("answers without a body, with bytes, and with the error that it throws", async () => {
    const port = await start();
    const post = (body: string) => send(port, { path: "/v2/models/m/recent", body });
    expect(await post("{}")).toMatchObject({ status: 200, text: "" });
    const { headers, text } = await post('{"file":true}');
    expect([headers["content-type"], text]).toEqual(["application/octet-stream", "\u0001\u0002"]);
    expect(await post('{"fails":true}')).toMatchObject({
      status: 404,
      text: '{"error":"nothing to forget"}',
    });
  });

  it("refuses a body that is not an object or too large, and other methods", async () => {
    const port = await start();
    const post = (body: string) => send(port, { path: "/v2/models/m/recent", body });
    expect((await post("[1]")).text).toContain("expected an object in the body");
    expect((await post("no")).text).toContain("expected JSON in the body");
    expect((await post(`{"x":"${"x".repeat(1000)}"}`)).status).toBe(400);
    expect((await send(port, { method: "DELETE", path: "/v2/models/m/recent" })).status).toBe(405);
  });

  it("belongs to its group, and is part of the OpenAPI document", async () => {
    const restrictions = { statistics: { header: "x-key", value: "secret" } };
    const port = await start({ restrictions, openApi: true });
    expect((await send(port, { method: "GET", path: "/v2/models/m/recent" })).status).toBe(403);
    const { text } = await send(port, { method: "GET", path: "/v2/openapi.json" });
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(openApiDocument([recent]))));
    expect(JSON.parse(text).paths["/v2/models/{model}/recent"]).toMatchObject({
      get: { operationId: "recentRequests", tags: ["statistics"] },
      post: { operationId: "forgetRequests" },
    });
  });
});
