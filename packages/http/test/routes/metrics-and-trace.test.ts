import { gunzipSync } from "node:zlib";
import type { TraceOptions } from "@tritonjs/core";
import { Tracing } from "@tritonjs/server";
import { realClock } from "@tritonjs/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { http, metrics } from "../../src/index.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const PAGE = Array.from(
  { length: 100 },
  (_, i) => `nv_inference_count{model="m${i}",version="1"} ${i}\n`,
).join("");

class LongPage extends IdentityService {
  override metrics() {
    return Promise.resolve(PAGE);
  }
}

describe.each([
  ["the metrics port", () => metrics({ port: 0 })],
  ["the main port", () => http({ port: 0, metrics: true })],
])("the metrics page on %s", (_, open) => {
  async function page(acceptEncoding?: string) {
    const frontend = open();
    onTestFinished(() => frontend.stop());
    const { port } = await frontend.start({ service: new LongPage(identityConfig("m", "INT32")) });
    const headers = acceptEncoding === undefined ? {} : { "accept-encoding": acceptEncoding };
    return send(port, { method: "GET", path: "/metrics", headers });
  }

  it.each(["gzip", "deflate, gzip;q=0.5", "br, *", "GZIP"])("is compressed for %s", async (accepted) => {
    const { headers, body } = await page(accepted);
    expect(headers).toMatchObject({ "content-encoding": "gzip", vary: "accept, accept-encoding" });
    expect(gunzipSync(body).toString()).toBe(PAGE);
    expect(body.length).toBeLessThan(PAGE.length / 5);
  });

  it.each([undefined, "br", "gzip;q=0", "*, gzip;q=0.0"])("is not compressed for %s", async (accepted) => {
    const { headers, text } = await page(accepted);
    expect(headers).not.toHaveProperty("content-encoding");
    expect(text).toBe(PAGE);
  });
});

describe("a frontend that starts", () => {
  class Prepared extends IdentityService {
    prepared = 0;
    async prepareMetrics() {
      this.prepared++;
      throw new Error("prom-client is not installed");
    }
  }

  it.each([
    ["metrics()", () => metrics({ port: 0 }), 1],
    ["http() with metrics", () => http({ port: 0, metrics: true }), 1],
    ["http() without metrics", () => http({ port: 0 }), 0],
  ])("prepares the metrics page once if it serves it, and starts without it: %s", async (_, open, times) => {
    const frontend = open();
    onTestFinished(() => frontend.stop());
    const service = new Prepared(identityConfig("m", "INT32"));
    const { port } = await frontend.start({ service });
    expect(service.prepared).toBe(times);
    expect(port).toBeGreaterThan(0);
  });
});

const initial = {
  trace_level: ["TIMESTAMPS"],
  trace_rate: "1",
  trace_count: "-1",
  log_frequency: "0",
  trace_file: "traces.json",
  trace_mode: "triton",
};

async function traced(options: TraceOptions = {}) {
  const identity = new IdentityService(identityConfig("m", "INT32"));
  const given = { level: "TIMESTAMPS", rate: 1, file: "traces.json", ...options } as const;
  const service = Object.assign(identity, { tracing: new Tracing(given, realClock, identity.log) });
  const port = await startHttp(service);
  const at = (model: string) => (model === "" ? "/v2/trace/setting" : `/v2/models/${model}/trace/setting`);
  return {
    get: async (model = "") => send(port, { method: "GET", path: at(model) }),
    post: async (body: unknown, model = "") =>
      send(port, { path: at(model), body: typeof body === "string" ? body : JSON.stringify(body) }),
  };
}

describe("trace settings over HTTP", () => {
  it("are returned as texts, in Triton's order", async () => {
    const { get } = await traced();
    const answer = await get();
    expect([answer.status, answer.headers["content-type"]]).toEqual([200, "application/json"]);
    expect(answer.text).toBe(JSON.stringify(initial));
    expect((await get("m")).text).toBe(answer.text);
  });

  it("are changed and returned with their new values", async () => {
    const { get, post } = await traced();
    const levels = { trace_level: ["TIMESTAMPS", "TENSORS"] };
    expect(JSON.parse((await post(levels)).text)).toEqual({ ...initial, ...levels });
    expect(JSON.parse((await get("m")).text)).toEqual({ ...initial, ...levels });
    const own = { trace_rate: "12", trace_count: "5", log_frequency: "34" };
    expect(JSON.parse((await post(own, "m")).text)).toEqual({ ...initial, ...levels, ...own });
    expect(JSON.parse((await get()).text)).toEqual({ ...initial, ...levels });
    expect(JSON.parse((await post({ trace_level: ["OFF"] })).text)).toMatchObject({ trace_level: ["OFF"] });
  });

  it("are reset by null", async () => {
    const { get, post } = await traced();
    await post({ trace_rate: "12", log_frequency: "34", trace_count: "2", trace_level: ["TENSORS"] }, "m");
    const rest = await post({ trace_rate: null, trace_count: null }, "m");
    expect(JSON.parse(rest.text)).toEqual({ ...initial, log_frequency: "34", trace_level: ["TENSORS"] });
    await post({ log_frequency: null, trace_level: null }, "m");
    expect(JSON.parse((await get("m")).text)).toEqual(initial);
  });

  it.each([
    "",
    "{}",
    "[]",
    '{"other":1}',
    '{"trace_level":["MIN"]}',
    '{"trace_level":[]}',
    '{"trace_mode":"x"}',
  ])("are kept by %j", async (body) => {
    const { post } = await traced();
    expect((await post(body)).text).toBe(JSON.stringify(initial));
  });

  it.each<[unknown, number, string]>([
    [
      { trace_file: "x", trace_rate: "y" },
      501,
      "trace file location can not be updated through network protocol",
    ],
    [{ trace_level: "OFF" }, 500, "attempt to access JSON non-array as array"],
    [{ trace_level: [1] }, 500, "attempt to access JSON non-string as string"],
    [{ trace_level: ["OFF", "TENSORS"] }, 400, "Expect only one trace level 'OFF' is specified"],
    [{ trace_rate: 5 }, 500, "attempt to access JSON non-string as string"],
    [{ trace_rate: "x" }, 400, "Unable to parse 'trace_rate', got: x"],
    [{ trace_rate: "0" }, 400, "Attempting to set invalid trace setting :sample rate must be non-zero"],
    [{ trace_count: "-2" }, 400, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"],
    [
      { log_frequency: "2147483648" },
      400,
      "Unable to parse 'log_frequency', value is out of range [ 0, 4294967295 ], got: 2147483648",
    ],
    ["{", 500, "failed to parse the request JSON buffer: Missing a name for object member. at 1"],
  ])("are not changed by the invalid body %j", async (body, status, error) => {
    const { get, post } = await traced();
    const answer = await post(body);
    expect([answer.status, answer.headers["content-type"]]).toEqual([status, "application/json"]);
    expect(JSON.parse(answer.text)).toEqual({ error });
    expect((await get()).text).toBe(JSON.stringify(initial));
  });

  it.each(["GET", "POST"])("are an error for an unknown model (%s)", async (method) => {
    const { get, post } = await traced();
    const answer = method === "GET" ? await get("none") : await post({ trace_rate: "2" }, "none");
    expect([answer.status, answer.text]).toEqual([400, '{"error":"Request for unknown model : none"}']);
  });
});
