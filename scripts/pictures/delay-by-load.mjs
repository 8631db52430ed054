import { drawLoadLines } from "./load-lines.mjs";
import { mean, simulateLoad } from "./simulate-load.mjs";

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
