import { describe, expect, test } from "vitest";
import { retryDelay } from "../../src/client/retry.js";

describe("a retry", () => {
  const policy = { retries: 2, delayMs: 100, unavailable: false };

  test("comes later and later, up to a limit, and not for ever", () => {
    const patient = { ...policy, retries: 20 };
    const delays = [0, 1, 2, 19, 20].map((attempt) => retryDelay("not-sent", attempt, false, patient));
    expect(delays).toEqual([100, 200, 400, 5_000, undefined]);
  });

  test("follows a lost call only when that does no harm", () => {
    expect(retryDelay("lost", 0, true, policy)).toBe(100);
    expect(retryDelay("lost", 0, false, policy)).toBeUndefined();
    expect(retryDelay("unavailable", 0, true, policy)).toBeUndefined();
    expect(retryDelay("unavailable", 0, false, { ...policy, unavailable: true })).toBe(100);
    expect(retryDelay(undefined, 0, true, policy)).toBeUndefined();
  });
});
