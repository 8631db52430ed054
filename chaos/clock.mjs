import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds of the monotonic clock, which all processes of the machine share. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

/** Resolves when a condition is true; rejects after three minutes. */
export async function until(condition, what, withinMs = 180_000) {
  const limit = now() + withinMs;
  for (;;) {
    if (await condition()) return;
    if (now() > limit) throw new Error(`expected ${what} within ${withinMs / 1000} s`);
    await sleep(50);
  }
}
