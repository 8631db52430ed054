import { expect, it } from "vitest";
import { LoopShare } from "../../src/instance/loop-share.js";

/** A clock whose deferred work runs when the test says so. */
function deferredWork() {
  const deferred: (() => void)[] = [];
  const turn = () => deferred.splice(0).forEach((run) => void run());
  return { clock: { defer: (run: () => void) => void deferred.push(run) }, deferred, turn };
}

it("a share is spent after 2 ms, and renewed by the next turn of the event loop", () => {
  const { clock, deferred, turn } = deferredWork();
  const share = new LoopShare();
  share.spend(1.5, clock);
  expect(share.isSpent).toBe(false);
  share.spend(0.5, clock);
  share.spend(10, clock);
  expect(share.isSpent).toBe(true);
  expect(deferred).toHaveLength(1);
  turn();
  expect(share.isSpent).toBe(false);
  share.spend(1.5, clock);
  expect(deferred).toHaveLength(0);
});

it("those who wait are called once each, the first one first, and the rest waits when the new share is spent", () => {
  const { clock, turn } = deferredWork();
  const share = new LoopShare();
  const log: string[] = [];
  const waits = (name: string) => () => {
    if (share.isSpent) return share.whenRenewed(listeners[name]!);
    log.push(name);
    share.spend(3, clock);
  };
  const listeners: Record<string, () => void> = { a: waits("a"), b: waits("b") };
  share.spend(3, clock);
  share.whenRenewed(listeners.a!);
  share.whenRenewed(listeners.b!);
  share.whenRenewed(listeners.a!);
  turn();
  expect(log).toEqual(["a"]);
  turn();
  turn();
  expect(log).toEqual(["a", "b"]);
});
