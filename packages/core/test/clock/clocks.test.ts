import { afterEach, describe, expect, it, vi } from "vitest";
import { realClock } from "../../src/clock/clock.js";
import { VirtualClock } from "../../src/clock/virtual-clock.js";

describe("the virtual clock", () => {
  it("runs timers in the order of their time, and of their making where the time is the same", async () => {
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

  it("runs timers that other timers and promises set on the way", async () => {
    const clock = new VirtualClock();
    const ran: number[] = [];
    clock.setTimer(1, () => {
      void Promise.resolve().then(() => clock.setTimer(1, () => ran.push(clock.now())));
    });
    await clock.advance(2);
    expect(ran).toEqual([2]);
  });

  it("does not run what was cancelled", async () => {
    const clock = new VirtualClock();
    const timer = clock.setTimer(1, () => expect.fail("it was cancelled"));
    timer.cancel();
    timer.cancel();
    await clock.advance(5);
  });

  it("runs deferred work without moving", async () => {
    const clock = new VirtualClock();
    const ran: number[] = [];
    clock.defer(() => clock.defer(() => ran.push(clock.now())));
    await clock.settle();
    expect([ran, clock.now()]).toEqual([[0], 0]);
  });
});

describe("the real clock", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it("never runs a timer early, not even one beyond what setTimeout can count", () => {
    vi.useFakeTimers();
    const day = 24 * 3600 * 1000;
    let ran = 0;
    realClock.setTimer(60 * day, () => ran++);
    vi.advanceTimersByTime(59 * day);
    expect(ran).toBe(0);
    vi.advanceTimersByTime(day);
    expect(ran).toBe(1);
  });

  it("never runs a timer that is endless", () => {
    vi.useFakeTimers();
    const timer = realClock.setTimer(Number.POSITIVE_INFINITY, () => expect.fail("it is endless"));
    vi.advanceTimersByTime(2 ** 33);
    timer.cancel();
    expect(vi.getTimerCount()).toBe(0);
  });
});
