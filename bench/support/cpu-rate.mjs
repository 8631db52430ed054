import { SECONDS } from "./pairs.mjs";

/** Calls a second at a concurrency, and CPU milliseconds for each call, which are steady on a busy machine. */
export async function rateOf(concurrency, call) {
  const start = performance.now();
  const before = process.cpuUsage();
  let calls = 0;
  const client = async () => {
    do {
      await call();
      calls++;
    } while (performance.now() - start < 1000 * SECONDS);
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  const { user, system } = process.cpuUsage(before);
  return { rate: (1000 * calls) / (performance.now() - start), cpu: (user + system) / 1000 / calls };
}
