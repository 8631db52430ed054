import { drawLoadLines } from "./load-lines.mjs";
import { mean, simulateLoad } from "./simulate-load.mjs";

const COUNT = 600;
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
