import { describe, expect, it, vi } from "vitest";

/* The oracle of `npm run chaos` must find what is wrong: each case here is one that it must not let pass. */

const part = (name: string) => import(new URL(`../../chaos/oracle/${name}.mjs`, import.meta.url).href);
const { excuseOf, faultsOfDeaths } = await part("excuses");
const { Journal, LEFT, WrongAnswer } = await part("journal");
const { faultsOfStatistics } = await part("statistics");
const { faultsOfHoldings } = await part("leaks");
const { EventLog } = await import(new URL("../../chaos/events/event-log.mjs", import.meta.url).href);

const crashed = {
  protocol: "gRPC",
  server: "serve",
  model: "js_process",
  text: "instance 'js_process_0' of model 'js_process' crashed: was ended by SIGKILL",
  startedAt: 100_000,
  endedAt: 100_010,
};
const death = {
  server: "serve",
  model: "js_process",
  instance: "js_process_0",
  why: "instance 'js_process_0' of model 'js_process' crashed: was ended by SIGKILL",
  at: 100_005,
};
const events = () => new EventLog(() => {});

describe("a failed request", () => {
  it("is excused by the death of the instance that it names", () => {
    expect(excuseOf(crashed, [death], events())).toBe("instance died");
  });

  it.each([
    ["no instance died", []],
    ["another instance died", [{ ...death, instance: "js_process_1" }]],
    ["the instance of another server died", [{ ...death, server: "program" }]],
    ["the instance died long before", [{ ...death, at: 80_000 }]],
    ["the instance died long after", [{ ...death, at: 120_000 }]],
  ])("is a fault when %s", (_, deaths) => {
    expect(excuseOf(crashed, deaths, events())).toBeUndefined();
  });

  it("is a fault when its model was in the repository all the time", () => {
    const failure = {
      ...crashed,
      model: "changing",
      text: "Request for unknown model: 'changing' is not found",
    };
    const log = events();
    expect(excuseOf(failure, [], log)).toBeUndefined();
    log.events.push({ name: "half written version", server: "serve", from: 99_000, to: 101_000 });
    expect(excuseOf(failure, [], log)).toBeUndefined();
    log.events.push({
      name: "model removed from the repository",
      server: "serve",
      from: 99_000,
      to: 101_000,
    });
    expect(excuseOf(failure, [], log)).toBe("model removed");
  });

  it("is a fault when its text is unknown", () => {
    expect(excuseOf({ ...crashed, text: "read ECONNRESET" }, [death], events())).toBeUndefined();
  });
});

describe("an instance that died", () => {
  const killed = () => {
    const log = events();
    log.note("model process killed", { server: "serve" });
    return log;
  };

  it("is not a fault when it was killed and failed what it ran", () => {
    expect(faultsOfDeaths([crashed], [death], killed())).toEqual([]);
  });

  it("is a fault when nothing killed it", () => {
    expect(faultsOfDeaths([], [death], events())).toEqual([
      "expected at most 0 instances to be killed, got 1",
    ]);
    const [fault] = faultsOfDeaths([], [{ ...death, why: "exited with code 1" }], killed());
    expect(fault).toContain("died by itself: exited with code 1");
  });

  it("is a fault when it failed more requests than an instance has", () => {
    const failures = Array.from({ length: 9 }, () => crashed);
    expect(faultsOfDeaths(failures, [death], killed())).toEqual([
      "1 deaths of instance serve/js_process_0 may fail 8 requests, but 9 failed",
    ]);
  });
});

describe("the journal", () => {
  const about = { protocol: "gRPC", server: "serve", model: "m" };

  it("counts right answers, clients that left, and failures", async () => {
    const journal = new Journal();
    await journal.record(about, async () => {});
    await journal.record(about, async () => LEFT);
    const failure = Object.assign(new Error("full"), { code: "UNAVAILABLE", reason: "QUEUE_FULL" });
    await journal.record(about, () => Promise.reject(failure));
    expect(journal.protocols.get("gRPC")).toEqual({ sent: 3, right: 1, failed: 1, left: 1 });
    expect(journal.models.get("serve/m")).toEqual({ sent: 3, right: 1, failed: 1, left: 1 });
    expect(journal.failures).toMatchObject([{ ...about, code: "UNAVAILABLE", text: "full" }]);
    expect(journal.faults).toEqual([]);
  });

  it("has a fault for a wrong answer and for an error that is none of the library's", async () => {
    const journal = new Journal();
    await journal.record(about, () => Promise.reject(new WrongAnswer("expected 4, got 5")));
    await journal.record(about, () => Promise.reject(new TypeError("x is not a function")));
    expect(journal.faults).toHaveLength(2);
    expect(journal.faults[0]).toBe("gRPC request to 'm' of serve expected 4, got 5");
  });

  it("has one fault for a request that never settles", () => {
    const journal = new Journal();
    const clock = vi.spyOn(process.hrtime, "bigint").mockReturnValue(0n);
    void journal.record(about, () => new Promise(() => {}));
    clock.mockReturnValue(181_000_000_000n);
    journal.findStuck();
    journal.findStuck();
    clock.mockRestore();
    expect(journal.faults).toEqual(["gRPC request to 'm' of serve did not settle within 180 s"]);
  });
});

describe("statistics", () => {
  const report = (success: number, fail: number) => [
    { name: "m", inference_stats: { success: { count: success }, fail: { count: fail } } },
  ];
  const seen = new Map([["serve/m", { right: 10, failed: 2, left: 3 }]]);
  const faultsOf = (success: number, fail: number) =>
    faultsOfStatistics("serve", report(success, fail), seen, new Map([["m", 1]]), new Map());

  it("equal what the clients saw, but for the clients that left", () => {
    expect(faultsOf(10, 1)).toEqual([]);
    expect(faultsOf(13, 4)).toEqual([]);
  });

  it("are a fault when a request is missing or counted twice", () => {
    expect(faultsOf(9, 1)).toHaveLength(1);
    expect(faultsOf(14, 1)).toHaveLength(1);
    expect(faultsOf(10, 0)).toHaveLength(1);
    expect(faultsOf(10, 6)).toHaveLength(1);
  });
});

it.each(["socket", "pipe", "file"])("a descriptor of kind %s that stays open is a fault", (kind) => {
  const before = {
    descriptors: { socket: 3, pipe: 3, file: 3, other: 3 },
    threads: 10,
    processes: 2,
    files: [],
  };
  const after = { ...before, descriptors: { ...before.descriptors, [kind]: 4 } };
  expect(faultsOfHoldings("serve", before, before)).toEqual([]);
  expect(faultsOfHoldings("serve", before, after)).toHaveLength(1);
});

it("a process that stays is a fault", () => {
  const before = {
    descriptors: { socket: 3, pipe: 3, file: 3, other: 3 },
    threads: 10,
    processes: 2,
    files: [],
  };
  expect(faultsOfHoldings("serve", before, { ...before, processes: 3 })).toEqual([
    "serve holds 3 processes, and had 2 before the load",
  ]);
});
