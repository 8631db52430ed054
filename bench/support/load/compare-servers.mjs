import { medianOf, ratioOf, runPairs, SECONDS } from "../pairs.mjs";
import { short } from "../statistics.mjs";

/** Warm-up time, until the hot code is compiled. */
const WARM_UP_SECONDS = 3 * SECONDS;

/**
 * Loads two servers in turns. Measures answers a second, and the CPU time of an answer in the server, which other work
 * on the machine affects less. Also measures how busy the event loop was: near 100% the load was sufficient.
 *
 * @param ours the program and the function that loads it: `[program, async (seconds) => ({ rate, p50Ms, p99Ms })]`, the
 * latencies if it knows them
 */
export async function compareServers(ours, reference, { seconds = SECONDS, scale = 1 } = {}) {
  for (const [, load] of [ours, reference]) await load(Math.max(WARM_UP_SECONDS, seconds));
  const runs = await runPairs(measured(ours, seconds, scale), measured(reference, seconds, scale), {
    warmUp: false,
  });
  const { ratios, ...ratio } = ratioOf(runs);
  const cpu = ratioOf({ ours: runs.reference, reference: runs.ours }, ({ cpuMicros }) => cpuMicros);
  const row = {
    "a second here": medianOf(runs.ours, ({ rate }) => rate),
    "a second there": medianOf(runs.reference, ({ rate }) => rate),
    ...ratio,
    "CPU µs here": medianOf(runs.ours, ({ cpuMicros }) => cpuMicros),
    "CPU µs there": medianOf(runs.reference, ({ cpuMicros }) => cpuMicros),
    "ratio by CPU": cpu.ratio,
    ...latencies(runs),
    "busy here": percent(medianOf(runs.ours, ({ busy }) => busy)),
    "busy there": percent(medianOf(runs.reference, ({ busy }) => busy)),
  };
  return { row, ratio, ratios, cpu };
}

/** Median and 99th percentile of the latency, from loads that report them. */
function latencies({ ours, reference }) {
  if (ours[0].p50Ms === undefined) return {};
  return {
    "p50 ms here": medianOf(ours, ({ p50Ms }) => p50Ms),
    "p99 ms here": medianOf(ours, ({ p99Ms }) => p99Ms),
    "p50 ms there": medianOf(reference, ({ p50Ms }) => p50Ms),
    "p99 ms there": medianOf(reference, ({ p99Ms }) => p99Ms),
  };
}

const percent = (share) => `${Math.round(short(share) * 100)}%`;

function measured([program, load], seconds, scale) {
  return async () => {
    await program.call("use");
    const start = performance.now();
    const { rate, p50Ms, p99Ms } = await load(seconds);
    const elapsed = (performance.now() - start) / 1000;
    const { cpuMs, utilization } = await program.call("use");
    const answers = rate * scale * seconds;
    return {
      rate: rate * scale,
      p50Ms,
      p99Ms,
      cpuMicros: (cpuMs * 1000) / answers,
      busy: Math.min(1, (utilization * elapsed) / seconds),
    };
  };
}
