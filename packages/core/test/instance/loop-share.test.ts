import { expect, it } from "vitest";
import { LoopShare } from "../../src/instance/loop-share.js";

/** A share whose clock and turns of the event loop the test moves. */
function shareInTest() {
  const deferred: (() => void)[] = [];
  let now = 0;
  const clock = { now: () => now, defer: (run: () => void) => void deferred.push(run) };
  return {
    share: new LoopShare(clock),
    deferred,
    pass: (ms: number) => {
      now += ms;
    },
    turn: () => deferred.splice(0).forEach((run) => void run()),
  };
}

it("is spent 2 ms after the first callback of a turn, and renewed by the next turn of the event loop", () => {
  const { share, deferred, pass, turn } = shareInTest();
  pass(10);
  expect(share.isSpent).toBe(false);
  share.begin();
  pass(1.5);
  share.begin();
  expect(share.isSpent).toBe(false);
  pass(0.5);
  expect(share.isSpent).toBe(true);
  expect(deferred).toHaveLength(1);
  turn();
  expect(share.isSpent).toBe(false);
  share.begin();
  pass(1.5);
  expect(share.isSpent).toBe(false);
});

it("calls each waiting listener once and in order, and lets the rest wait when the new share is spent", () => {
  const { share, pass, turn } = shareInTest();
  const log: string[] = [];
  const waits = (name: string) => () => {
    if (share.isSpent) return share.whenRenewed(listeners[name]!);
    log.push(name);
    share.begin();
    pass(3);
  };
  const listeners: Record<string, () => void> = { a: waits("a"), b: waits("b") };
  share.begin();
  pass(3);
  share.whenRenewed(listeners.a!);
  share.whenRenewed(listeners.b!);
  share.whenRenewed(listeners.a!);
  turn();
  expect(log).toEqual(["a"]);
  turn();
  turn();
  expect(log).toEqual(["a", "b"]);
});
