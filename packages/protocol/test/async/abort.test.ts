import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { onAbort } from "../../src/concurrency-gate.js";

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

describe("followers of an abort signal", () => {
  it("are all called once on abort, behind one listener", () => {
    const controller = new AbortController();
    const called: number[] = [];
    for (const follower of [1, 2, 3]) onAbort(controller.signal, () => called.push(follower));
    expect(listeners(controller.signal)).toBe(1);
    controller.abort();
    controller.abort();
    expect(called).toEqual([1, 2, 3]);
  });

  it("are not called after they stop, and leave no listener behind after the last one", () => {
    const controller = new AbortController();
    const called: number[] = [];
    const stops = [1, 2].map((follower) => onAbort(controller.signal, () => called.push(follower)));
    stops[0]!();
    expect(listeners(controller.signal)).toBe(1);
    stops[1]!();
    stops[1]!();
    expect(listeners(controller.signal)).toBe(0);
    onAbort(controller.signal, () => called.push(3));
    stops[0]!();
    controller.abort();
    expect(called).toEqual([3]);
  });

  it("may stop themselves and other followers while they are called", () => {
    const controller = new AbortController();
    const called: number[] = [];
    const stops = [1, 2, 3].map((follower) =>
      onAbort(controller.signal, () => {
        called.push(follower);
        stops[0]!();
        stops[1]!();
      }),
    );
    controller.abort();
    expect(called).toEqual([1, 3]);
  });
});
