import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../src/clock/virtual-clock.js";
import { RefusalLine } from "../../src/service/refusal-line.js";

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
    const { clock, out, refuse } = lineOf(1);
    refuse(8 + 10_000);
    await clock.advance(1000);
    expect(out.length).toBeGreaterThan(5000);
    await clock.advance(9000);
    expect(out).toHaveLength(10_000);
  });
});
