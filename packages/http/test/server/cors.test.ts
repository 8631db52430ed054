import { Authentication } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { fetchHandler } from "../../src/fetch.js";
import { type CorsOptions, http } from "../../src/index.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const page = "https://app.example.com";
const infer = {
  path: "/v2/models/m/infer",
  body: '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],"data":[1]}]}',
};
const preflight = {
  method: "OPTIONS",
  path: infer.path,
  headers: {
    origin: page,
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type,x-key",
  },
};

const identity = () => new IdentityService(identityConfig("m", "INT32"));

/** The headers of CORS in an answer. */
function granted(headers: Record<string, unknown>): Record<string, unknown> {
  const names = Object.keys(headers).filter((name) => name === "vary" || name.startsWith("access-control-"));
  return Object.fromEntries(names.map((name) => [name.replace("access-control-", ""), headers[name]]));
}

describe("CORS of a server", () => {
  it("is off by default: no headers, and 405 for a preflight request", async () => {
    const port = await startHttp(identity());
    const answer = await send(port, { ...infer, headers: { origin: page } });
    expect([answer.status, granted(answer.headers)]).toEqual([200, {}]);
    expect((await send(port, preflight)).status).toBe(405);
  });

  it("answers a preflight request", async () => {
    const port = await startHttp(identity(), { cors: { origins: [page], maxAgeSeconds: 600 } });
    const { status, text, headers } = await send(port, preflight);
    expect([status, text]).toEqual([200, ""]);
    expect(granted(headers)).toEqual({
      vary: "Origin",
      "allow-origin": page,
      "allow-methods": "GET, POST",
      "allow-headers": "content-type,x-key",
      "max-age": "600",
    });
  });

  it.each<[string, CorsOptions, origin: string | undefined, Record<string, string>]>([
    ["a listed origin", { origins: [page] }, page, { vary: "Origin", "allow-origin": page }],
    ["another origin", { origins: [page] }, "https://evil.example", { vary: "Origin" }],
    ["no origin", { origins: [page] }, undefined, { vary: "Origin" }],
    ["any origin", { origins: true }, "https://evil.example", { "allow-origin": "*" }],
    ["a matching origin", { origins: [/https:\/\/\w+\.example\.com/g] }, page, { "allow-origin": page }],
    ["half a match", { origins: [/example\.com/] }, page, {}],
    [
      "credentials",
      { origins: [page], credentials: true },
      page,
      { "allow-origin": page, "allow-credentials": "true" },
    ],
  ])("grants %s what it may have", async (_name, cors, origin, expected) => {
    const port = await startHttp(identity(), { cors });
    for (let turn = 0; turn < 2; turn++) {
      const { status, headers } = await send(port, { ...infer, headers: origin ? { origin } : {} });
      expect(status).toBe(200);
      const { "expose-headers": exposed, vary, ...rest } = granted(headers);
      const { vary: _vary, ...wanted } = expected;
      expect(rest).toEqual(wanted);
      expect(vary).toBe(cors.origins === true ? undefined : "Origin");
      const shown = "inference-header-content-length, content-encoding, retry-after";
      expect(exposed).toBe("allow-origin" in expected ? shown : undefined);
    }
  });

  it("uses the given methods and headers", async () => {
    const cors = { origins: [page], methods: ["POST"], headers: ["x-key"], exposedHeaders: ["x-trace"] };
    const port = await startHttp(identity(), { cors });
    const asked = granted((await send(port, preflight)).headers);
    expect(asked).toMatchObject({ "allow-methods": "POST", "allow-headers": "x-key" });
    const { headers } = await send(port, { ...infer, headers: { origin: page } });
    expect(granted(headers)).toMatchObject({ "expose-headers": "x-trace" });
  });

  it("shows errors to pages, answers preflight requests before authentication, and keeps the log", async () => {
    const refuse = () => {
      throw new TritonError("UNAVAILABLE", "who are you", { reason: "UNAUTHENTICATED" });
    };
    const authentication = new Authentication(refuse, {}, { error() {} });
    const service = Object.assign(identity(), { authentication });
    const lines: string[] = [];
    const stream = { write: (line: string) => void lines.push(line) };
    const port = await startHttp(service, { cors: { origins: [page] }, logger: { stream } });
    expect((await send(port, preflight)).status).toBe(200);
    const { status, headers } = await send(port, { ...infer, headers: { origin: page } });
    expect([status, headers["access-control-allow-origin"]]).toEqual([401, page]);
    expect(lines.length).toBeGreaterThan(0);
  });

  it("works in the fetch handler", async () => {
    const handler = fetchHandler({ service: identity() }, { cors: { origins: [page] } });
    const url = `http://host${infer.path}`;
    const asked = await handler(new Request(url, { method: "OPTIONS", headers: preflight.headers }));
    expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([200, page]);
    const headers = { origin: page };
    const answer = await handler(new Request(url, { method: "POST", body: infer.body, headers }));
    expect(answer.headers.get("access-control-allow-origin")).toBe(page);
    expect(await answer.json()).toMatchObject({ outputs: [{ data: [1] }] });
  });

  it.each<[CorsOptions, text: string]>([
    [
      { origins: true, credentials: true },
      "cors.credentials: expected a list of origins, got origins: true, which lets every site act for its visitors",
    ],
    [
      { origins: ["https://app.example.com/"] },
      "cors.origins: expected an origin such as 'https://app.example.com', without a path, got 'https://app.example.com/'",
    ],
    [
      { origins: ["*"] },
      "cors.origins: expected an origin such as 'https://app.example.com', without a path, got '*'",
    ],
    [{ origins: page } as never, `cors.origins: expected true or a list, got ${page}`],
  ])("rejects %j", async (cors, text) => {
    await expect(http({ port: 0, cors }).start(identity())).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: text,
    });
  });
});
