import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DeadlineQueue, VirtualClock } from "../../src/system/clock.js";

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
