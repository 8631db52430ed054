import { monitorEventLoopDelay } from "node:perf_hooks";

/** A call for `answerCalls`: the 99th percentile of the event loop's delay since the last call, in ms. */
export function eventLoopDelay() {
  const resolution = 1;
  const histogram = monitorEventLoopDelay({ resolution });
  histogram.enable();
  return () => {
    const p99 = histogram.percentile(99) / 1e6 - resolution;
    histogram.reset();
    return Math.max(0, p99);
  };
}
