import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { loadSpanTracer } from "../../src/serve/triton-settings.js";

afterEach(() => {
  vi.doUnmock("@tritonjs/core/opentelemetry/otlp");
  vi.resetModules();
});

/** A collector that answers with a status; returns its address without a scheme, and what it received. */
async function collector(status: number) {
  const received: string[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    received.push(text);
    response.writeHead(status, { "content-type": "application/json" }).end("{}");
  });
  server.listen(0);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { url: `localhost:${(server.address() as AddressInfo).port}/v1/traces`, received };
}

/** Sends the span of one request. Returns the messages about failures. */
async function sendOne(settings: Parameters<typeof loadSpanTracer>[0]): Promise<string[]> {
  const failures: string[] = [];
  const tracer = await loadSpanTracer(settings, (message) => failures.push(message));
  const trace = tracer.start({
    modelName: "m",
    selected: true,
    arrival: undefined,
    now: () => 1,
    wallOffsetMs: 1_700_000_000_000,
  })!;
  trace.begin("m", 1, { id: "a", inputs: new Map() }, 1);
  trace.end(2);
  trace.release();
  await tracer.close?.();
  return failures;
}

describe("the exporter of spans", () => {
  it("sends spans with the resource to a URL without a scheme", async () => {
    const { url, received } = await collector(200);
    expect(await sendOne({ url, resource: { "service.name": "mine" }, maxQueueSize: 7 })).toEqual([]);
    const [{ resource, scopeSpans }] = JSON.parse(received[0]!).resourceSpans;
    expect(resource.attributes).toContainEqual({ key: "service.name", value: { stringValue: "mine" } });
    expect(scopeSpans[0].spans).toMatchObject([
      { name: "m", startTimeUnixNano: "1700000000001000000", endTimeUnixNano: "1700000000002000000" },
    ]);
  });

  it("reports spans that the collector refuses", async () => {
    const { url } = await collector(400);
    expect(await sendOne({ url, resource: {} })).toEqual([
      expect.stringContaining(`failed to export 1 spans to 'http://${url}': `),
    ]);
  });

  it("refuses settings that make no sense", async () => {
    await expect(sendOne({ url: "http://:", resource: {} })).rejects.toThrow(
      "otlp.url: expected a URL, got http://:",
    );
    await expect(sendOne({ maxQueueSize: -1, resource: {} })).rejects.toThrow(
      "otlp.maxQueueSize: expected an integer of at least 0, got -1",
    );
  });

  it("says which package to install when it is missing", async () => {
    vi.doMock("@tritonjs/core/opentelemetry/otlp", () => {
      throw new Error("Cannot find package");
    });
    await expect(sendOne({ resource: {} })).rejects.toThrow(
      /^trace mode opentelemetry: a package is missing; .*npm install @opentelemetry\/api/,
    );
  });
});
