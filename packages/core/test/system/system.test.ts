import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers";
import fc from "fast-check";
import { afterEach, describe, expect, it, test, vi } from "vitest";
import { DeadlineQueue, realClock, VirtualClock } from "../../src/system/clock.js";
import { type Linked, LinkedList } from "../../src/system/collections.js";
import { coresOf, hostPolicyWarnings } from "../../src/system/host-policy.js";

describe("the virtual clock", () => {
  it("runs timers in order of time, and of creation where times are equal", async () => {
    const clock = new VirtualClock();
    const ran: string[] = [];
    clock.setTimer(20, () => ran.push(`c at ${clock.now()}`));
    clock.setTimer(10, () => ran.push(`a at ${clock.now()}`));
    clock.setTimer(10, () => ran.push(`b at ${clock.now()}`));
    await clock.advance(15);
    expect([ran, clock.now()]).toEqual([["a at 10", "b at 10"], 15]);
    await clock.advance(5);
    expect(ran.at(-1)).toBe("c at 20");
  });

  it("runs timers that other timers and promises set meanwhile", async () => {
    const clock = new VirtualClock();
    const ran: number[] = [];
    clock.setTimer(1, () => {
      void Promise.resolve().then(() => clock.setTimer(1, () => ran.push(clock.now())));
    });
    await clock.advance(2);
    expect(ran).toEqual([2]);
  });

  it("does not run cancelled timers", async () => {
    const clock = new VirtualClock();
    const timer = clock.setTimer(1, () => expect.fail("it was cancelled"));
    timer.cancel();
    timer.cancel();
    await clock.advance(5);
  });

  it("runs deferred work without moving time", async () => {
    const clock = new VirtualClock();
    const ran: number[] = [];
    clock.defer(() => clock.defer(() => ran.push(clock.now())));
    await clock.settle();
    expect([ran, clock.now()]).toEqual([[0], 0]);
  });
});

describe("the real clock", () => {
  const { setTimeout, clearTimeout } = timers;
  afterEach(() => {
    vi.useRealTimers();
    Object.assign(timers, { setTimeout, clearTimeout });
    syncBuiltinESMExports();
  });

  /** Fakes the timers of the module `node:timers` too, which the clock takes its own from. */
  function fakeAllTimers(): void {
    vi.useFakeTimers();
    const { setTimeout, clearTimeout } = globalThis;
    Object.assign(timers, { setTimeout, clearTimeout });
    syncBuiltinESMExports();
  }

  it("keeps its time where a program's tests fake that of the program", async () => {
    vi.useFakeTimers();
    await new Promise<void>((resolve) => {
      realClock.setTimer(1, () => realClock.defer(resolve));
    });
  });

  it("never runs a timer early, even beyond the longest setTimeout", () => {
    fakeAllTimers();
    const day = 24 * 3600 * 1000;
    let ran = 0;
    realClock.setTimer(60 * day, () => ran++);
    vi.advanceTimersByTime(59 * day);
    expect(ran).toBe(0);
    vi.advanceTimersByTime(day);
    expect(ran).toBe(1);
  });

  it("never runs an infinite timer", () => {
    fakeAllTimers();
    const timer = realClock.setTimer(Number.POSITIVE_INFINITY, () => expect.fail("it is endless"));
    vi.advanceTimersByTime(2 ** 33);
    timer.cancel();
    expect(vi.getTimerCount()).toBe(0);
  });
});

interface Member extends Linked<Member> {
  readonly name: string;
}

const member = (name: string): Member => ({ name, next: undefined, previous: undefined });

describe("a linked list", () => {
  test.each([
    [0, ["b", "c"]],
    [1, ["a", "c"]],
    [2, ["a", "b"]],
  ])("does not include member %i any more once it is removed, however often", (removed, left) => {
    const list = new LinkedList<Member>();
    const members = ["a", "b", "c"].map(member);
    for (const one of members) list.push(one);
    expect([list.remove(members[removed]!), list.remove(members[removed]!)]).toEqual([true, false]);
    expect(list.all().map(({ name }) => name)).toEqual(left);
    const last = member("last");
    list.push(last);
    expect(list.all().at(-1)).toBe(last);
    for (const one of [...members, last]) list.remove(one);
    expect([list.size, list.head, list.tail]).toEqual([0, undefined, undefined]);
  });
});

describe("the deadline queue", () => {
  it("calls each deadline at its time, whatever the order of adding", async () => {
    const deadlines = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(deadlines, async (times) => {
        const clock = new VirtualClock();
        const queue = new DeadlineQueue(clock);
        const passed: [number, number][] = [];
        for (const at of times) queue.add(at, () => passed.push([at, clock.now()]));
        await clock.advance(50);
        expect(passed).toEqual(times.sort((a, b) => a - b).map((at) => [at, at]));
        expect(queue.size).toBe(0);
      }),
      { numRuns: 15 },
    );
  });

  it("drops cancelled deadlines at any position and calls the others", async () => {
    const cancellations = fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.boolean()), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(cancellations, async (all) => {
        const clock = new VirtualClock();
        const queue = new DeadlineQueue(clock);
        const passed: number[] = [];
        const deadlines = all.map(([at]) => queue.add(at, () => passed.push(at)));
        all.forEach(([, cancelled], i) => {
          if (cancelled) deadlines[i]!.cancel();
        });
        const left = all.filter(([, cancelled]) => !cancelled).map(([at]) => at);
        expect(queue.size).toBe(left.length);
        await clock.advance(9);
        expect(passed).toEqual(left.sort((a, b) => a - b));
      }),
      { numRuns: 15 },
    );
  });

  it("ignores a second cancellation and a cancellation after the deadline", async () => {
    const clock = new VirtualClock();
    const queue = new DeadlineQueue(clock);
    const [early, late] = [queue.add(1, () => {}), queue.add(2, () => {})];
    await clock.advance(1);
    early.cancel();
    expect(queue.size).toBe(1);
    late.cancel();
    late.cancel();
    expect(queue.size).toBe(0);
  });

  it("calls a deadline that has already passed as soon as possible", async () => {
    const clock = new VirtualClock();
    await clock.advance(10);
    let passed = 0;
    new DeadlineQueue(clock).add(3, () => passed++);
    await clock.advance(0);
    expect(passed).toBe(1);
  });

  it("lets callbacks add and cancel deadlines", async () => {
    const clock = new VirtualClock();
    const queue = new DeadlineQueue(clock);
    const passed: string[] = [];
    const doomed = queue.add(5, () => passed.push("doomed"));
    queue.add(5, () => passed.push("other"));
    queue.add(4, () => {
      doomed.cancel();
      queue.add(6, () => passed.push("added"));
    });
    await clock.advance(10);
    expect(passed).toEqual(["other", "added"]);
  });
});

describe("the cores of a host policy", () => {
  it.each([
    ["0-3", [0, 1, 2, 3]],
    ["0-1,4-5", [0, 1, 4, 5]],
    ["2-2", [2]],
    ["3-1", []],
    [" 0-1x", [0, 1]],
    ["1022-9999", [1022, 1023]],
  ])("are the ranges of %s", (text, cores) => {
    expect(coresOf(text)).toEqual(cores);
  });

  it.each([
    ["3", "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 3"],
    ["0-1,4", "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 4"],
    ["", "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got "],
    ["a-1", "Parsing 'cpu-cores' value: Can't parse 'a' to integer"],
    ["0-", "Parsing 'cpu-cores' value: Can't parse '' to integer"],
    ["0-99999999999", "Parsing 'cpu-cores' value: Can't parse '99999999999' to integer"],
  ])("are refused in Triton's words: '%s'", (text, message) => {
    expect(() => coresOf(text)).toThrow(message);
  });
});

describe("a setting that cannot be applied", () => {
  const platform = Object.getOwnPropertyDescriptor(process, "platform")!;
  it.each(["darwin", "win32"])("is warned of by name on %s", (value) => {
    Object.defineProperty(process, "platform", { ...platform, value });
    try {
      expect(hostPolicyWarnings({ cpu: { cpuCores: "0-1", numaNode: 0 }, low: { nice: 3 } })).toEqual([
        `host policy 'cpu': numa-node is not applied: expected Linux, got ${value}; remove the setting`,
        `host policy 'cpu': cpu-cores is not applied: expected Linux, got ${value}; remove the setting`,
      ]);
    } finally {
      Object.defineProperty(process, "platform", platform);
    }
  });
});
