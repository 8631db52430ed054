import { describe, expect, test } from "vitest";
import { retryDelay } from "../../src/caller.js";

describe("retryDelay", () => {
  const policy = { retries: 2, delayMs: 100, unavailable: false };

  test("grows up to a limit, and ends after the last retry", () => {
    const patient = { ...policy, retries: 20 };
    const delays = [0, 1, 2, 19, 20].map((attempt) => retryDelay("not-sent", attempt, false, patient));
    expect(delays).toEqual([100, 200, 400, 5_000, undefined]);
  });

  test("retries a lost call only when repeating it is safe", () => {
    expect(retryDelay("lost", 0, true, policy)).toBe(100);
    expect(retryDelay("lost", 0, false, policy)).toBeUndefined();
    expect(retryDelay("unavailable", 0, true, policy)).toBeUndefined();
    expect(retryDelay("unavailable", 0, false, { ...policy, unavailable: true })).toBe(100);
    expect(retryDelay(undefined, 0, true, policy)).toBeUndefined();
  });

  test("waits as long as the server asks, if the time left allows it", () => {
    const patient = { ...policy, unavailable: true };
    const delay = (retryAfterMs: number | undefined, leftMs: number) =>
      retryDelay("unavailable", 0, false, patient, { retryAfterMs, leftMs });
    expect(delay(undefined, 10)).toBe(100);
    expect(delay(20, 1_000)).toBe(100);
    expect(delay(7_000, 8_000)).toBe(7_000);
    expect(delay(7_000, 7_000)).toBeUndefined();
    expect(delay(2 ** 31, Number.POSITIVE_INFINITY)).toBeUndefined();
    expect(delay(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)).toBeUndefined();
    expect(retryDelay("unavailable", 0, false, policy, { retryAfterMs: 1, leftMs: 10 })).toBeUndefined();
  });
});
