import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { MetricsPage } from "../../src/observe/metrics-page.js";
import type { MeteredModel } from "../../src/observe/model-families.js";
import { ModelStatistics } from "../../src/observe/statistics.js";

/** A server of many models. Its clock goes on by a millisecond whenever it is read. */
function server(count: number, registry?: Registry) {
  const models = Array.from({ length: count }, (_, i): MeteredModel => {
    const labels = { model: `m${i}`, version: "1" };
    return { labels, cached: false, batched: true, inflightCount: 0, statistics: new ModelStatistics() };
  });
  const clock = { nowMs: 0 };
  const page = new MetricsPage(
    { models: () => models, allowCpuMetrics: false },
    registry && { registry },
    () => clock.nowMs++,
  );
  return { page, models, clock };
}

/** Turns of the event loop until a promise settles. */
async function turnsOf<T>(promise: Promise<T>): Promise<readonly [turns: number, value: T]> {
  let turns = 0;
  let waiting = true;
  const count = (): void => {
    turns++;
    if (waiting) setImmediate(count);
  };
  setImmediate(count);
  const value = await promise;
  waiting = false;
  return [turns, value];
}

function linesOf(body: readonly Uint8Array[]): string[] {
  return Buffer.concat(body).toString().split("\n");
}

describe("the metrics page of many models", () => {
  it.each(["text/plain", "application/openmetrics-text"])(
    "is written as %s in turns of the event loop",
    async (accept) => {
      const { page } = server(500);
      const [turns, { body }] = await turnsOf(page.writeFor(accept));
      const lines = linesOf(body);
      expect(lines.length).toBeGreaterThan(20_000);
      // The clock is read after 32 series, and a turn ends with the fifth reading.
      expect(turns).toBeGreaterThan(lines.length / (32 * 6));
      expect(lines.filter((line) => line.startsWith("nv_inference_count{"))).toHaveLength(500);
    },
  );

  it("has the series that the registry writes, with its labels", async () => {
    const registry = new Registry();
    registry.setDefaultLabels({ app: 'a "shop"' });
    const { page } = server(50, registry);
    const { body } = await page.writeFor("text/plain");
    expect(linesOf(body)).toEqual((await registry.metrics()).split("\n"));
  });

  it("serves clients that come while it is written and within a second after it", async () => {
    const { page, models, clock } = server(500);
    const first = page.writeFor("text/plain");
    // The first 10,000 series take this many turns.
    for (let turn = 0; turn < 10_000 / (32 * 4); turn++) await new Promise(setImmediate);
    const second = page.writeFor("text/plain");
    expect(await second).toBe(await first);
    models[0]!.statistics.recordSuccess(1, 0, { start: 0, inputEnd: 0, inferEnd: 0, end: 0 });
    expect(await page.writeFor("text/plain")).toBe(await first);
    clock.nowMs += 1000;
    const later = await page.writeFor("text/plain");
    expect(linesOf(later.body)).toContain('nv_inference_request_success{model="m0",version="1"} 1');
  });

  it("is new for each client when it has few series, also where it takes several turns", async () => {
    const { page, models } = server(20);
    await page.writeFor("text/plain");
    models[0]!.statistics.recordSuccess(1, 0, { start: 0, inputEnd: 0, inferEnd: 0, end: 0 });
    const { body } = await page.writeFor("text/plain");
    expect(linesOf(body)).toContain('nv_inference_request_success{model="m0",version="1"} 1');
  });
});
