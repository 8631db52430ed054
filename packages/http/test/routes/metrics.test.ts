import { gunzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { http, metrics } from "../../src/index.js";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";

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
    const { port } = await frontend.start(new LongPage(identityConfig("m", "INT32")));
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
    const { port } = await frontend.start(service);
    expect(service.prepared).toBe(times);
    expect(port).toBeGreaterThan(0);
  });
});
