import { expect, it } from "vitest";
import { LoopShare } from "../../src/instance/run-callable.js";

/** A share whose clock and turns of the event loop the test moves. */
function shareInTest() {
  const deferred: (() => void)[] = [];
  let now = 0;
  const clock = { now: () => now, defer: (run: () => void) => void deferred.push(run) };
  const share = new LoopShare(clock);
  const pass = (ms: number) => {
    now += ms;
  };
  return {
    share,
    deferred,
    pass,
    /** Runs a callback that takes this long. */
    run(ms: number) {
      const turn = share.begin();
      pass(ms);
      share.end(turn);
    },
    turn: () => deferred.splice(0).forEach((run) => void run()),
    /** Ends the present event. */
    event: () => new Promise<void>((resolve) => setImmediate(resolve)),
  };
}

it("is spent by callbacks that took 2 ms together, and renewed by the next turn of the event loop", async () => {
  const { share, deferred, pass, run, event, turn } = shareInTest();
  pass(10);
  expect(share.isSpent).toBe(false);
  run(1.5);
  await event();
  run(0.4);
  expect(share.isSpent).toBe(false);
  await event();
  run(0.1);
  expect(share.isSpent).toBe(true);
  expect(deferred).toHaveLength(1);
  turn();
  expect(share.isSpent).toBe(false);
  run(1.5);
  expect(share.isSpent).toBe(false);
});

it("does not count what the event loop does between callbacks, up to 50 ms", async () => {
  const { share, pass, run, event } = shareInTest();
  for (let i = 0; i < 9; i++) {
    run(0.1);
    await event();
    pass(5);
    expect(share.isSpent).toBe(false);
  }
  pass(5);
  expect(share.isSpent).toBe(true);
});

it("is spent by one event that led to callbacks and took 2 ms with all that they caused", async () => {
  const { share, pass, run, event } = shareInTest();
  run(0.1);
  pass(1.8);
  expect(share.isSpent).toBe(false);
  run(0.1);
  expect(share.isSpent).toBe(true);
  await event();
  expect(share.isSpent).toBe(false);
});

it("counts callbacks that overlap once, and those at work", async () => {
  const { share, pass, event } = shareInTest();
  const first = share.begin();
  pass(0.5);
  const second = share.begin();
  pass(0.5);
  share.end(first);
  await event();
  expect(share.isSpent).toBe(false);
  pass(0.9);
  expect(share.isSpent).toBe(false);
  pass(0.2);
  expect(share.isSpent).toBe(true);
  share.end(second);
  expect(share.isSpent).toBe(true);
});

it("does not count a callback of an earlier turn", async () => {
  const { share, pass, run, event, turn } = shareInTest();
  const waiting = share.begin();
  turn();
  await event();
  run(0.1);
  pass(5);
  share.end(waiting);
  await event();
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
