import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers";
import { afterEach, describe, expect, it, vi } from "vitest";
import { realClock, VirtualClock } from "../../src/system/clock.js";

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
