import { describe, expect, it } from "vitest";
import { type PlannedInstance, planInstances } from "../../src/config/instance-groups.js";
import type { InstanceGroupOptions, RateLimiterOptions } from "../../src/config/model-options.js";
import {
  createRateLimiter,
  demandOf,
  type RateLimitedInstance,
  RateLimiter,
  type RateLimitResource,
  ResourcePools,
} from "../../src/instance/rate-limiter.js";
import { modelConfig } from "../support/model-config.js";
import { thrownText } from "../support/requests.js";

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
    expect(thrownText(() => createRateLimiter("on" as "off"))).toBe(
      "INVALID_ARG rateLimit: expected 'execution_count' or 'off', got 'on'",
    );
    expect(thrownText(() => createRateLimiter("execution_count", [{ name: "R", count: -1 }]))).toBe(
      "INVALID_ARG rateLimitResources: expected a non-negative integer as the count of 'R', got -1",
    );
  });
});

type Resources = NonNullable<RateLimiterOptions["resources"]>;

function planned(resources: Resources, group: InstanceGroupOptions = {}): PlannedInstance {
  const instanceGroup = { ...group, rateLimiter: { resources } };
  return planInstances(modelConfig({ options: { instanceGroup }, gpus: [0, 1] }))[0]!;
}

const needs = (name: string, count: number, global = false) => demandOf(planned([{ name, count, global }]));

const needsOnGpu = (gpu: number, name: string, count: number) =>
  demandOf(planned([{ name, count }], { gpus: [gpu] }));

/** Reason why the last demand cannot be met; all others can. */
function refusal(given: readonly RateLimitResource[], ...demands: readonly ReturnType<typeof demandOf>[]) {
  const pools = new ResourcePools(given);
  for (const demand of demands.slice(0, -1)) pools.add(demand);
  return thrownText(() => pools.add(demands.at(-1)!));
}

describe("resources without a configured count", () => {
  it("have the count of the largest demand", () => {
    const pools = new ResourcePools();
    const [small, big] = [needs("R", 1), needs("R", 3)];
    pools.add(small);
    expect([pools.allocate(small), pools.allocate(small)]).toEqual([true, false]);
    pools.add(big);
    expect([pools.allocate(small), pools.allocate(small), pools.allocate(small)]).toEqual([
      true,
      true,
      false,
    ]);
    for (let i = 0; i < 3; i++) pools.release(small);
    expect(pools.allocate(big)).toBe(true);
    pools.release(big);
    pools.remove(big);
    expect([pools.allocate(small), pools.allocate(small)]).toEqual([true, false]);
  });

  it("belong to one device; those of the CPU belong to device 0", () => {
    const pools = new ResourcePools();
    const [cpu, first, second] = [needs("R", 1), needsOnGpu(0, "R", 1), needsOnGpu(1, "R", 1)];
    for (const demand of [cpu, first, second]) pools.add(demand);
    expect([cpu, first, second].map((demand) => pools.allocate(demand))).toEqual([true, false, true]);
  });

  it("are shared by all devices when they are global", () => {
    const pools = new ResourcePools();
    const [first, second] = [0, 1].map((gpu) =>
      demandOf(planned([{ name: "R", count: 1, global: true }], { gpus: [gpu] })),
    );
    pools.add(first!);
    pools.add(second!);
    expect([pools.allocate(first!), pools.allocate(second!)]).toEqual([true, false]);
  });

  it("are allocated all or none", () => {
    const pools = new ResourcePools();
    const both = demandOf(
      planned([
        { name: "A", count: 1 },
        { name: "B", count: 1 },
      ]),
    );
    const [a, b] = [needs("A", 1), needs("B", 1)];
    for (const demand of [both, a, b]) pools.add(demand);
    expect([pools.allocate(b), pools.allocate(both), pools.allocate(a)]).toEqual([true, false, true]);
  });

  it("take the last count when one instance names them twice", () => {
    const twice = demandOf(
      planned([
        { name: "D", count: 1 },
        { name: "D", count: 2 },
      ]),
    );
    expect([...twice.get(0)!]).toEqual([["D", 2]]);
  });

  it("cannot be both global and device-specific", () => {
    expect(refusal([], needs("Q", 1, true), needs("Q", 1))).toBe(
      'INVALID_ARG Resource "Q" is present as both global and device-specific resource in the model configuration.',
    );
  });
});

describe("resources with a configured count", () => {
  const limited = (name: string, have: number, need: number) =>
    `INVALID_ARG Resource count for "${name}" is limited to ${have} which will prevent scheduling of one or more ` +
    `model instances, the minimum required count is ${need}`;

  it("have that count", () => {
    const pools = new ResourcePools([{ name: "R", count: 2 }]);
    const demand = needs("R", 1);
    pools.add(demand);
    expect([pools.allocate(demand), pools.allocate(demand), pools.allocate(demand)]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it("must suffice for every instance", () => {
    expect(refusal([{ name: "FIX", count: 4 }], needs("FIX", 5))).toBe(limited("FIX", 4, 5));
    expect(refusal([{ name: "FIX", count: 4 }], needs("FIX", 4))).toBe("nothing was thrown");
  });

  it("do not exist unless configured", () => {
    expect(refusal([{ name: "FIX", count: 4 }], needs("Q", 3))).toBe(limited("Q", 0, 3));
    expect(refusal([{ name: "FIX", count: 4 }], needs("Z", 0))).toBe("nothing was thrown");
  });

  it("may belong to one device, and a global demand takes the count of any device", () => {
    const given = [{ name: "R", count: 2, device: 1 }];
    expect(refusal(given, needsOnGpu(1, "R", 2))).toBe("nothing was thrown");
    expect(refusal(given, needsOnGpu(0, "R", 2))).toBe(limited("R", 0, 2));
    expect(refusal(given, needs("R", 2, true))).toBe("nothing was thrown");
    expect(refusal([{ name: "R", count: 2, device: "global" }], needs("R", 2))).toBe(limited("R", 0, 2));
  });

  it("are not used up by a rejected instance", () => {
    const pools = new ResourcePools([{ name: "R", count: 1 }]);
    expect(thrownText(() => pools.add(needs("R", 2)))).toBe(limited("R", 1, 2));
    const demand = needs("R", 1);
    pools.add(demand);
    expect(pools.allocate(demand)).toBe(true);
  });
});
