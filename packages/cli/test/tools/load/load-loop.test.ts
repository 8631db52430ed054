import { VirtualClock } from "@tritonjs/core/testing";
import { describe, expect, it } from "vitest";
import type { LoadClock } from "../../../src/load/feeder.js";
import type { LoadLevel } from "../../../src/load/load-level.js";
import { LoadLoop, type LoopPlan } from "../../../src/load/load-loop.js";
import { sequenceRules } from "../../../src/load/sequence-load.js";
import type { LoadRequest } from "../../../src/target/carrier.js";

/** A loop under a virtual clock, with a carrier whose requests take `serviceMs`, or fail as lost connections. */
class Bench {
  readonly clock = new VirtualClock();
  readonly sentAt: number[] = [];
  serviceMs = 5;
  isDown = false;
  readonly loop: LoadLoop;
  readonly #time: LoadClock = {
    now: () => this.clock.now(),
    wakeAt: (time, run) => this.clock.setTimer(Math.max(0, time - this.clock.now()), run),
  };

  constructor(share = { index: 0, count: 1 }, sequences?: LoopPlan["sequences"]) {
    const kept = { responses: false, outputs: false, tokens: false };
    this.loop = new LoadLoop(
      { share, seed: 3, payloads: 7, kept, ...(sequences !== undefined && { sequences }) },
      (_, onEnd) => ({
        bytesSent: 0,
        bytesReceived: 0,
        send: (request) => this.#send(request, onEnd),
        cancel: () => {},
        close: () => {},
      }),
      this.#time,
    );
  }

  #send(request: LoadRequest, onEnd: (request: LoadRequest) => void): void {
    this.sentAt.push(this.clock.now());
    request.sent = this.clock.now();
    const end = () => {
      request.end = this.clock.now();
      if (this.isDown) request.fail("cannot connect");
      else request.responded(request.end);
      request.isConnectionLost = this.isDown;
      onEnd(request);
    };
    this.clock.setTimer(this.isDown ? 0 : this.serviceMs, end);
  }
}

describe("a load loop", () => {
  it("sends at a constant rate from the first slot on, whether answers come or not", async () => {
    const bench = new Bench();
    bench.serviceMs = 1000;
    bench.loop.begin({ mode: "request_rate", value: 100, distribution: "constant" }, 0);
    await bench.clock.advance(45);
    expect(bench.sentAt).toEqual([0, 10, 20, 30, 40]);
  });

  it("keeps requests in flight, and follows a ramp", async () => {
    const bench = new Bench();
    bench.serviceMs = 10;
    bench.loop.begin({ mode: "concurrency_ramp", from: 1, to: 3, durationMs: 20 }, 0);
    const inFlight: number[] = [];
    for (let i = 0; i < 5; i++) {
      await bench.clock.advance(6);
      inFlight.push(bench.loop.inFlight);
    }
    expect(inFlight).toEqual([1, 2, 2, 3, 3]);
    void bench.loop.pause();
    await bench.clock.advance(10);
    expect(bench.loop.inFlight).toBe(0);
  });

  it("tries a server that is gone after pauses that double to a second, and goes on when it is back", async () => {
    const bench = new Bench();
    bench.isDown = true;
    bench.loop.begin({ mode: "concurrency", value: 1 }, 0);
    await bench.clock.advance(5000);
    expect(bench.sentAt).toEqual([0, 10, 30, 70, 150, 310, 630, 1270, 2270, 3270, 4270]);
    bench.isDown = false;
    await bench.clock.advance(300);
    expect(bench.sentAt.slice(11, 14)).toEqual([5270, 5275, 5280]);
  });

  it("fails the slots of a rate while the server cannot be reached, without trying each", async () => {
    const bench = new Bench();
    bench.isDown = true;
    bench.loop.begin({ mode: "request_rate", value: 1000, distribution: "constant" }, 0);
    await bench.clock.advance(100.5);
    const { records, delayed } = bench.loop.take();
    expect(records.count).toBe(101);
    expect(delayed).toBe(0);
    expect(records.errors).toEqual(["cannot connect"]);
    expect(bench.sentAt.length).toBeLessThan(8);
  });

  it("does not count requests as late that waited for a server which is gone, and tries few of them", async () => {
    const streams = [{ first: 0, count: 3 }];
    const rules = sequenceRules({}, false, { index: 0, count: 1 });
    const bench = new Bench(undefined, { streams, rules, live: 1, serial: true });
    bench.serviceMs = 200;
    bench.loop.begin({ mode: "request_rate", value: 1000, distribution: "constant" }, 0);
    await bench.clock.advance(250);
    bench.isDown = true;
    await bench.clock.advance(250);
    const { records, delayed } = bench.loop.take();
    expect(records.count).toBeGreaterThan(300);
    expect(records.errors).toEqual(["cannot connect"]);
    expect(delayed).toBe(0);
    expect(bench.sentAt.length).toBeLessThan(12);
  });

  it.each<LoadLevel>([
    { mode: "request_rate", value: 500, distribution: "poisson" },
    { mode: "request_rate_ramp", from: 0, to: 900, distribution: "poisson", durationMs: 100 },
    { mode: "request_intervals", gapsMicroseconds: [1500, 250, 4000] },
  ])("sends the same schedule from any number of threads: $mode", async (level) => {
    const times = async (count: number) => {
      const all: number[] = [];
      for (let index = 0; index < count; index++) {
        const bench = new Bench({ index, count });
        bench.loop.begin(level, 0);
        await bench.clock.advance(200);
        all.push(...bench.sentAt);
      }
      return all.sort((a, b) => a - b);
    };
    const one = await times(1);
    expect(one.length).toBeGreaterThan(50);
    expect(await times(3)).toEqual(one);
  });

  it("records the scheduled time, and counts requests that were sent late", async () => {
    const bench = new Bench();
    bench.loop.begin({ mode: "request_rate", value: 1000, distribution: "constant" }, -3);
    await bench.clock.advance(10.5);
    const { records, delayed } = bench.loop.take();
    expect(Array.from(records.scheduled.slice(0, 4))).toEqual([-3, -2, -1, 0]);
    expect(Array.from(records.sent.slice(0, 4))).toEqual([0, 0, 0, 0]);
    expect(delayed).toBe(2);
  });
});
