import { Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/testing";
import { drawLoadLines } from "./drawing.mjs";

const COUNT = 600;
const LOADS = [50, 100, 200, 400, 800, 1600];

/** How a queue delay changes the latency at each load: computed by the library's own batcher. */
export async function drawDelayByLoad() {
  const series = [];
  for (const delayMs of [0, 2, 10]) {
    const points = [];
    for (const perSecond of LOADS) {
      const model = {
        durationMs: (rows) => 4 + 0.5 * rows,
        config: { maxBatchSize: 32, batcher: { maxQueueDelayMicroseconds: 1000 * delayMs } },
      };
      points.push([perSecond, mean(await simulateLoad({ perSecond, count: COUNT }, model))]);
    }
    series.push({ label: `delay of ${delayMs} ms`, points });
  }
  return drawLoadLines({
    title: "Mean latency, for a model that takes 4 ms and 0.5 ms for each row",
    series,
    xLabel: "requests a second",
    yLabel: "milliseconds",
  });
}

/** Different inputs among the requests, most first. */
const VALUES = [600, 300, 120, 40, 12, 4];

/** How a response cache changes the latency, by how often inputs repeat: computed with the library's own cache. */
export async function drawCacheByRepetition() {
  const series = [];
  for (const perSecond of [150, 220]) {
    for (const isCached of [false, true]) {
      const points = [];
      for (const values of VALUES) {
        const model = {
          durationMs: () => 4,
          config: { maxBatchSize: 1, responseCache: isCached },
          options: { responseCache: { byteSize: 1024 * 1024 } },
        };
        points.push([COUNT / values, mean(await simulateLoad({ perSecond, count: COUNT, values }, model))]);
      }
      series.push({ label: `${perSecond} a second${isCached ? ", cached" : ""}`, points });
    }
  }
  return drawLoadLines({
    title: "Mean latency, for a model that takes 4 ms for each request",
    series,
    xLabel: "requests, divided by the number of inputs from which each takes one at random",
    yLabel: "milliseconds",
  });
}

/**
 * Sends Poisson arrivals to a model on a virtual clock, and returns the latencies in milliseconds.
 *
 * @param load.perSecond requests a second
 * @param load.count number of requests
 * @param load.values how many different inputs the requests have; each its own unless given
 * @param model.durationMs time of a batch by its rows
 */
export async function simulateLoad(
  { perSecond, count, values = count },
  { durationMs, config, options = {} },
) {
  const clock = new VirtualClock();
  let state = 1;
  // A linear congruential generator, so that each drawing is the same.
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const triton = new Triton({ clock, ...options });
  const model = triton.bind({
    modelName: "m",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: (requests) => {
      const results = requests.map(({ inputs }) => ({ y: inputs.x }));
      return new Promise((resolve) => clock.setTimer(durationMs(requests.length), () => resolve(results)));
    },
    config,
  });
  await triton.ready();
  const latencies = [];
  for (let i = 0; i < count; i++) {
    await clock.advance((-Math.log(1 - random()) * 1000) / perSecond);
    const sent = clock.now();
    const x = Math.floor(random() * values);
    void model.inferSample({ x: [x] }).then(() => latencies.push(clock.now() - sent));
  }
  await clock.advance(60_000);
  await triton.close();
  if (latencies.length !== count) throw new Error(`expected ${count} answers, got ${latencies.length}`);
  return latencies;
}

export const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
