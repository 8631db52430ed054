import { describe, expect, it } from "vitest";
import { planInstances } from "../../../src/config/instance-groups.js";
import { createRateLimiter, MachinePlan } from "../../../src/instance/machine-plan.js";
import { type RateLimitedInstance, RateLimiter } from "../../../src/instance/rate-limiter.js";
import { modelConfig } from "../../support/model-config.js";
import { thrownText } from "../../support/requests.js";

/** Registers an instance that logs its name when it may run. */
function instance(limiter: RateLimiter, log: string[], name: string, count: number, priority = 1) {
  const instanceGroup = { rateLimiter: { resources: [{ name: "R", count }], priority } };
  const lease = limiter.register(planInstances(modelConfig({ options: { instanceGroup } }))[0]!);
  lease.granted = () => log.push(name);
  return lease;
}

/** Runs both instances while more than `turns` requests are left, and returns who had each turn. */
function turns(priorities: readonly [number, number], count: number): string {
  const limiter = new RateLimiter();
  const log: string[] = [];
  const [a, b] = priorities.map((priority, i) => instance(limiter, log, "ab"[i]!, 1, priority)) as [
    RateLimitedInstance,
    RateLimitedInstance,
  ];
  let waiting = count - 2;
  limiter.stage(a);
  limiter.stage(b);
  for (let done = 0; done < count; done++) {
    const running = log.at(-1) === "a" ? a : b;
    limiter.release(running, () => {
      if (waiting-- > 0) limiter.stage(running);
    });
  }
  return log.join("");
}

describe("the rate limiter", () => {
  it("gives turns by executions times priority, counting load and warm-up as the first two", () => {
    expect(turns([1, 2], 12)).toBe("aabaabaabaab");
    expect(turns([1, 3], 13)).toBe("aaaabaaabaaab");
    expect(turns([1, 1], 8)).toBe("abababab");
  });

  it("runs instances at once when the resources suffice for all", () => {
    const limiter = new RateLimiter([{ name: "R", count: 2 }]);
    const log: string[] = [];
    const all = ["a", "b", "c"].map((name) => instance(limiter, log, name, 1));
    for (const one of all) limiter.stage(one);
    expect(log).toEqual(["a", "b"]);
    limiter.release(all[0]!, () => {});
    expect(log).toEqual(["a", "b", "c"]);
  });

  it("keeps small demands waiting behind an earlier large one", () => {
    const limiter = new RateLimiter([{ name: "R", count: 2 }]);
    const log: string[] = [];
    const [first, much, little] = [1, 2, 1].map((count, i) => instance(limiter, log, "fml"[i]!, count)) as [
      RateLimitedInstance,
      RateLimitedInstance,
      RateLimitedInstance,
    ];
    for (const one of [first, much, little]) limiter.stage(one);
    expect(log).toEqual(["f"]);
    limiter.release(first, () => {});
    expect(log).toEqual(["f", "m"]);
    limiter.release(much, () => {});
    expect(log).toEqual(["f", "m", "l"]);
  });

  it("skips an instance that is unregistered while it waits", () => {
    const limiter = new RateLimiter();
    const log: string[] = [];
    const [a, b, c] = ["a", "b", "c"].map((name) => instance(limiter, log, name, 1)) as [
      RateLimitedInstance,
      RateLimitedInstance,
      RateLimitedInstance,
    ];
    for (const one of [a, b, c]) limiter.stage(one);
    limiter.unregister(b);
    limiter.release(a, () => {});
    expect(log).toEqual(["a", "c"]);
  });

  it("is created only on request, and rejects invalid modes and resource counts", () => {
    expect(createRateLimiter()).toBeUndefined();
    expect(createRateLimiter("off", [{ name: "R", count: 1 }])).toBeUndefined();
    expect(createRateLimiter("execution_count")).toBeInstanceOf(RateLimiter);
    expect(createRateLimiter("deadlines")).toBeInstanceOf(MachinePlan);
    expect(thrownText(() => createRateLimiter("on" as "off"))).toBe(
      "INVALID_ARG rateLimit: expected 'execution_count', 'deadlines' or 'off', got 'on'",
    );
    expect(thrownText(() => createRateLimiter("execution_count", [{ name: "R", count: -1 }]))).toBe(
      "INVALID_ARG rateLimitResources: expected a non-negative integer as the count of 'R', got -1",
    );
  });
});
