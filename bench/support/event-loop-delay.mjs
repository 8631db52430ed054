import { monitorEventLoopDelay } from "node:perf_hooks";

/** A call for `answerCalls`: the 99th percentile, in ms, of how late the event loop was since it was last asked. */
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
