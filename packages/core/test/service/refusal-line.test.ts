import { describe, expect, it } from "vitest";
import { RefusalLine } from "../../src/service/refusal-line.js";
import type { Clock } from "../../src/system/clock.js";
import { VirtualClock } from "../../src/system/clock.js";

/** A line on an event loop with this utilization, and the times at which refusals left it. */
function lineOf(utilization: number) {
  const clock = new VirtualClock();
  const line = new RefusalLine(clock, () => utilization);
  const out: number[] = [];
  const refuse = (count: number) => {
    for (let i = 0; i < count; i++) void line.turn()?.then(() => out.push(clock.now()));
  };
  return { clock, line, out, refuse };
}

describe("the refusal line", () => {
  it("sends the first few refusals at once", () => {
    const { line } = lineOf(0);
    expect(Array.from({ length: 8 }, () => line.turn())).toEqual(Array(8).fill(undefined));
  });

  it("sends as many at once again after a tick", async () => {
    const { clock, line } = lineOf(0);
    for (let i = 0; i < 8; i++) line.turn();
    await clock.advance(4);
    expect(line.turn()).toBeUndefined();
  });

  it("sends eight further refusals each tick", async () => {
    const { clock, out, refuse } = lineOf(0);
    refuse(26);
    await clock.advance(100);
    expect(out).toEqual([...Array(8).fill(4), ...Array(8).fill(8), 12, 12]);
  });

  it("keeps the order of refusals", async () => {
    const { clock, line } = lineOf(0);
    const order: number[] = [];
    for (let i = 0; i < 40; i++) void line.turn()?.then(() => order.push(i));
    await clock.advance(100);
    expect(order).toEqual(Array.from({ length: 32 }, (_, i) => 8 + i));
  });

  it("makes a later refusal wait behind those in the line", async () => {
    const { clock, line, refuse } = lineOf(0);
    refuse(20);
    await clock.advance(4);
    expect(line.turn()).toBeInstanceOf(Promise);
  });

  it("doubles the pause between two lots while the event loop is busy", async () => {
    const { clock, out, refuse } = lineOf(1);
    refuse(64);
    await clock.advance(1000);
    expect([...new Set(out)]).toEqual([4, 12, 28, 60, 124, 188, 252]);
  });

  it("sends larger lots from a long line", async () => {
    const { clock, out, refuse } = lineOf(0);
    refuse(8 + 10_000);
    await clock.advance(1000);
    expect(out.length).toBeGreaterThan(5000);
    await clock.advance(9000);
    expect(out).toHaveLength(10_000);
  });

  it("sends small lots in short ticks from a long line while the event loop is busy", async () => {
    const { clock, out, refuse } = lineOf(1);
    refuse(8 + 4000);
    await clock.advance(1000);
    const lots = new Map<number, number>();
    for (const at of out) lots.set(at, (lots.get(at) ?? 0) + 1);
    expect(Math.max(...lots.values())).toBeLessThanOrEqual(16);
    expect(out.length).toBeGreaterThan(500);
    expect(out.length).toBeLessThan(1500);
    await clock.advance(30_000);
    expect(out).toHaveLength(4000);
  });

  it("lets all out at once when it dissolves", async () => {
    const { clock, line, out, refuse } = lineOf(1);
    refuse(8 + 100);
    line.dissolve();
    await clock.advance(0);
    expect(out).toEqual(Array(100).fill(0));
  });
});

/** A queue whose room the test decides, and what became of the requests that wait for it. */
function queueOf(line: RefusalLine, name = "") {
  const queue = { freePlaces: 0, onSettled: undefined as (() => void) | undefined };
  const accepted: string[] = [];
  const refused: string[] = [];
  const left: string[] = [];
  const wait = (id: number) => {
    const place = line.placeFor(queue);
    void place.turn.then(
      () => {
        if (queue.freePlaces === 0) refused.push(`${name}${id}`);
        else {
          queue.freePlaces--;
          accepted.push(`${name}${id}`);
        }
      },
      (error) => left.push(`${name}${id} ${error.code}`),
    );
    return place;
  };
  return { queue, wait, accepted, refused, left };
}

describe("a request in the refusal line", () => {
  /** A line that sends nothing at once any more. */
  const spentLine = () => {
    const { clock, line } = lineOf(0);
    for (let i = 0; i < 8; i++) line.turn();
    return { clock, line };
  };

  it("is accepted when its queue has room, the newest first", async () => {
    const { clock, line } = spentLine();
    const { queue, wait, accepted, refused } = queueOf(line);
    for (let id = 0; id < 20; id++) wait(id);
    queue.freePlaces = 3;
    queue.onSettled!();
    await clock.advance(0);
    expect(accepted).toEqual(["19", "18", "17"]);
    await clock.advance(100);
    expect(refused).toEqual(Array.from({ length: 17 }, (_, id) => `${id}`));
  });

  it("gets room that a batch leaves in the turn of a refusal before that refusal goes out", async () => {
    const timers: (() => void)[] = [];
    const deferred: (() => void)[] = [];
    const clock: Clock = {
      now: () => 0,
      wallNow: () => 0,
      setTimer: (_delayMs, run) => {
        timers.push(run);
        return { cancel: () => {} };
      },
      defer: (run) => void deferred.push(run),
    };
    const line = new RefusalLine(clock, () => 0);
    for (let i = 0; i < 8; i++) line.turn();
    const { queue, wait, accepted, refused } = queueOf(line);
    for (let id = 0; id < 2; id++) wait(id);
    queue.freePlaces = 1;
    queue.onSettled!();
    // One turn of the event loop: timers, then what was deferred.
    for (const run of timers) run();
    for (const run of deferred) {
      run();
      await Promise.resolve();
    }
    expect({ accepted, refused }).toEqual({ accepted: ["1"], refused: ["0"] });
  });

  it("keeps its place while other models have room", async () => {
    const { clock, line } = spentLine();
    const [full, free] = [queueOf(line, "full"), queueOf(line, "free")];
    full.wait(0);
    free.wait(0);
    free.queue.freePlaces = 1;
    free.queue.onSettled!();
    await clock.advance(0);
    expect([full.accepted, free.accepted]).toEqual([[], ["free0"]]);
  });

  it("takes turns with the requests of other models", async () => {
    const { clock, line } = spentLine();
    const [many, few] = [queueOf(line, "many"), queueOf(line, "few")];
    for (let id = 0; id < 100; id++) many.wait(id);
    for (let id = 0; id < 2; id++) few.wait(id);
    await clock.advance(4);
    expect([many.refused.length, few.refused.length]).toEqual([6, 2]);
  });

  it("gives its turn to the next one when it leaves", async () => {
    const { clock, line } = spentLine();
    const { queue, wait, refused, left } = queueOf(line);
    const places = Array.from({ length: 20 }, (_, id) => wait(id));
    for (let id = 0; id < 10; id++) places[id]!.leave();
    places[19]!.leave();
    await clock.advance(4);
    expect(left).toHaveLength(11);
    expect(left[0]).toBe("0 CANCELLED");
    expect(refused).toEqual(Array.from({ length: 8 }, (_, i) => `${10 + i}`));
    places[10]!.leave();
    await clock.advance(100);
    expect(refused).toHaveLength(9);
    expect(left).toHaveLength(11);
    expect(queue.onSettled).toBeUndefined();
  });

  it("starts a single pace after a line was empty for a moment", async () => {
    const { clock, line } = spentLine();
    const { wait, refused } = queueOf(line);
    wait(0).leave();
    for (let id = 1; id < 100; id++) wait(id);
    await clock.advance(8);
    expect(refused).toHaveLength(16);
  });
});
