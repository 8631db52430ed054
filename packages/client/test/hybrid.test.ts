import { hybrid } from "@tritonjs/client/hybrid";
import { TritonError } from "@tritonjs/core";
import { describe, expect, it } from "vitest";

/** A side whose calls take as long as it is told. */
class Side {
  calls = 0;
  ms: number;
  error: Error | undefined;

  constructor(
    private readonly clock: { time: number },
    ms: number,
  ) {
    this.ms = ms;
  }

  async inferSample(x: number): Promise<number> {
    this.calls++;
    this.clock.time += this.ms;
    if (this.error !== undefined) throw this.error;
    return 2 * x;
  }

  inferBatch = this.inferSample;
}

/** A clock whose timers run when `fire` is called. */
function testClock() {
  const timers = new Set<() => void>();
  const clock = {
    time: 0,
    now: () => clock.time,
    setTimer(_delayMs: number, run: () => void) {
      timers.add(run);
      return { cancel: () => void timers.delete(run) };
    },
    fire: () => timers.forEach((run) => void run()),
    timers,
  };
  return clock;
}

function open(localMs: number, remoteMs: number) {
  const clock = testClock();
  const [local, remote] = [new Side(clock, localMs), new Side(clock, remoteMs)];
  return { clock, local, remote, model: hybrid({ local, remote, clock }) };
}

describe("hybrid()", () => {
  it.each([
    [1, 100],
    [10, 12],
    [50, 50],
    [100, 20],
    [400, 3],
  ])(
    "takes at most a tenth longer than the faster side: %s ms here, %s ms on the server",
    async (here, there) => {
      const { clock, local, remote, model } = open(here, there);
      // Both sides are measured once.
      for (let i = 0; i < 4; i++) await model.inferSample(i);
      const start = clock.time;
      for (let i = 0; i < 2000; i++) expect(await model.inferSample(i)).toBe(2 * i);
      expect((clock.time - start) / 2000).toBeLessThanOrEqual(1.1 * Math.min(here, there));
      expect(Math.min(local.calls, remote.calls)).toBeGreaterThan(0);
    },
  );

  it("follows a device that becomes slow", async () => {
    const { local, remote, model } = open(5, 20);
    for (let i = 0; i < 50; i++) await model.inferSample(i);
    local.ms = 200;
    const before = remote.calls;
    for (let i = 0; i < 50; i++) await model.inferSample(i);
    expect(remote.calls - before).toBeGreaterThan(40);
  });

  it("answers here while the server cannot be reached, and asks it less and less often", async () => {
    const { clock, remote, model } = open(30, 5);
    for (let i = 0; i < 10; i++) await model.inferSample(i);
    remote.error = new TritonError("UNAVAILABLE", "connection refused");
    const before = remote.calls;
    for (let i = 0; i < 1000; i++) expect(await model.inferSample(i)).toBe(2 * i);
    expect(remote.calls - before).toBeLessThan(8);
    remote.error = undefined;
    clock.time += 60_000;
    await model.inferSample(1);
    expect(model.status().next).toBe("remote");
  });

  it("runs the model here when the server is silent, and leaves the server alone", async () => {
    const { clock, local, remote, model } = open(30, 5);
    for (let i = 0; i < 10; i++) await model.inferSample(i);
    expect(model.status().next).toBe("remote");
    const silent = new Promise<number>(() => {});
    remote.inferSample = () => silent;
    const answer = model.inferSample(4);
    clock.fire();
    expect(await answer).toBe(8);
    const before = local.calls;
    for (let i = 0; i < 10; i++) expect(await model.inferSample(i)).toBe(2 * i);
    expect(local.calls - before).toBe(10);
  });

  it("keeps no timer of a call that is answered", async () => {
    const { clock, model } = open(30, 5);
    for (let i = 0; i < 10; i++) await model.inferSample(i);
    expect(clock.timers.size).toBe(0);
  });

  it("passes on faults of the request without asking the other side", async () => {
    const { local, remote, model } = open(5, 20);
    local.error = new TritonError("INVALID_ARG", "unexpected shape");
    await expect(model.inferSample(1)).rejects.toThrow("unexpected shape");
    expect(remote.calls).toBe(0);
  });

  it("uses the server until the model is here, and if it never comes", async () => {
    const clock = testClock();
    const remote = new Side(clock, 20);
    const model = hybrid({ local: Promise.reject(new Error("no WebAssembly")), remote, clock });
    for (let i = 0; i < 3; i++) expect(await model.inferSample(i)).toBe(2 * i);
    expect(remote.calls).toBe(3);
  });

  it("rejects unknown options", () => {
    const { local, remote } = open(1, 1);
    expect(() => hybrid({ local, remote, locale: 1 } as never)).toThrow(
      "hybrid() has an unknown option 'locale'",
    );
  });
});
