import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { InferRequest, TritonOptions } from "@tritonjs/core";
import type { Rollout, RolloutOptions, RolloutStep } from "@tritonjs/operations/rollout";
import { Tensor } from "@tritonjs/protocol";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { RollingTriton } from "../../../../test/support/rolling-triton.js";
import { PLANTED_FAULTS, rollbackOf } from "./release-bench.js";

const X = [{ name: "x", dtype: "FP32", shape: [1] }] as const;

const Y = [{ name: "y", dtype: "FP32", shape: [1] }] as const;

/** Whether a model has sequences, and how long callers wait. */
interface Kind {
  readonly sequence?: boolean;
  readonly patienceMs?: number;
}

/** A model whose version 2 hangs for some requests; numbers of requests count from 1 on. */
async function bench(
  hangs: (x: number, count: number) => boolean,
  { sequence = false }: Kind = {},
  options: TritonOptions = {},
) {
  const clock = new VirtualClock();
  const triton = new RollingTriton({ clock, allowCpuMetrics: false, logInfo: false, ...options });
  onTestFinished(() => close({ clock, triton }));
  let count = 0;
  for (const modelVersion of [1, 2]) {
    const answer = async (request: InferRequest<typeof X>) => {
      const x = request.inputs.x!.data[0]!;
      if (modelVersion === 2 && hangs(x, ++count)) await new Promise(() => {});
      // One answer of version 1 in twenty is slow.
      const takesMs = modelVersion === 2 ? 10 : x % 20 === 9 ? 400 : 40;
      await new Promise<void>((done) => clock.setTimer(takesMs, done));
      return { y: [[x]] };
    };
    triton.bind({
      modelName: "m",
      modelVersion,
      inputs: X,
      outputs: Y,
      inferFunc: (requests) => Promise.all(requests.map(answer)),
      config: {
        maxBatchSize: 1,
        instanceGroup: [{ count: 64, kind: "KIND_CPU" }],
        ...(options.responseCache !== undefined && { responseCache: true }),
        ...(sequence && { sequence: { maxSequenceIdleMicroseconds: 60e6 } }),
      },
    });
  }
  await triton.ready();
  return { clock, triton };
}

type Bench = Awaited<ReturnType<typeof bench>>;

async function close({ clock, triton }: Bench): Promise<void> {
  let isClosed = false;
  const closed = triton.close().then(() => {
    isClosed = true;
  });
  while (!isClosed) await clock.advance(60_000);
  await closed;
}

/** Sends requests of value 0, 1, 2, ..., a second apart. Callers leave after `patienceMs`. */
async function send({ clock, triton }: Bench, count: number, { sequence = false, patienceMs }: Kind = {}) {
  for (let i = 0; i < count; i++) {
    const left = new AbortController();
    const signal = left.signal;
    const place = { id: 1 + Math.floor(i / 4), start: i % 4 === 0, end: i % 4 === 3 };
    const call = triton.infer("m", { x: [[i]] }, { signal, ...(sequence && { sequence: place }) });
    call.catch(() => {});
    if (patienceMs !== undefined) clock.setTimer(patienceMs, () => left.abort());
    await clock.advance(1000);
  }
}

const step = (share: number, minRequests = 0): RolloutStep => ({ share, forSeconds: 60, minRequests });

const start = ({ triton }: Bench, options: Partial<RolloutOptions>): Promise<Rollout> =>
  triton.rollout("m", { from: 1, to: 2, seed: 5, ...options });

describe("hanging versions", () => {
  it("a restart ends the requests in flight, and they still count as unanswered", async () => {
    const directory = await mkdtemp(join(tmpdir(), "rollouts-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const options = { steps: [step(50, 5)], directory };
    const first = await bench((x) => x % 2 === 0);
    const before = await start(first, options);
    await send(first, 120);
    const { inFlight } = before.report();
    expect(inFlight).toBeGreaterThan(10);
    await close(first);
    const second = await bench(() => false);
    const after = await start(second, options);
    await send(second, 20);
    expect(after.report()).toMatchObject({ state: "running", inFlight: 0 });
    expect(after.report().waitsFor).toMatch(/the callers of \d+ of \d+ requests to version 2 left/);
  });
});

describe("a version that never answers is not promoted", () => {
  const shadow = { maxLoad: 100 };
  it.each<[string, Partial<RolloutOptions>, number, string]>([
    [
      "by steps and copies",
      { steps: [step(0), step(20, 20), step(50, 20)], shadow },
      0,
      "in flight, the oldest",
    ],
    [
      "by counted copies",
      { steps: [step(0, 20), step(20)], shadow },
      0,
      "expected 20 answers of version 2 in",
    ],
    ["by copies alone", { steps: [step(0)], shadow }, 0, "in flight"],
    ["by counted shares", { steps: [step(20, 20), step(50, 20)] }, 20, "got 0"],
    ["by time", { steps: [step(20), step(50)] }, 20, "in flight"],
    ["by time without copies", { steps: [step(0), step(20)] }, 20, "in flight"],
    ["by a share of 100", { steps: [step(100)] }, 100, "in flight"],
    ["without checks", { steps: [step(50, 5)], verdict: { errors: false, latency: false } }, 50, "got 0"],
  ])("%s", async (_, options, share, why) => {
    const server = await bench(() => true);
    const rollout = await start(server, options);
    await send(server, 240);
    expect(rollout.report()).toMatchObject({ state: "running", share });
    expect(rollout.report().waitsFor).toContain(why);
    expect(rollout.report().inFlight).toBeGreaterThan(0);
  });

  it("when its callers leave, or when nobody asks it", async () => {
    const left = await bench(() => true);
    const steps = [step(50)];
    const given = await start(left, { steps });
    await send(left, 300, { patienceMs: 100 });
    expect(given.report()).toMatchObject({ state: "running", share: 50, inFlight: 0 });
    expect(given.report().waitsFor).toMatch(/the callers of (\d+) of \1 requests to version 2 left/);
    const server = await bench(() => true);
    const rollout = await start(server, { steps: [step(0), step(50)] });
    await server.clock.advance(600_000);
    expect(rollout.report()).toMatchObject({
      state: "running",
      share: 50,
      waitsFor: "version 2 has not answered a request yet",
    });
  });

  it("when the response cache answers for it", async () => {
    const y = Tensor.fromElements("FP32", [1, 1], Float32Array.of(1));
    const responseCache = { get: () => new Map([["y", y]]), set() {} };
    const server = await bench(() => true, {}, { responseCache });
    const rollout = await start(server, { steps: [step(50)] });
    await send(server, 100);
    expect(rollout.verdict().new.requests).toBeGreaterThan(20);
    expect(rollout.report()).toMatchObject({
      state: "running",
      waitsFor: expect.stringContaining("not answered"),
    });
  });
});

describe("a version that hangs in part does not pass on the answers of the rest", () => {
  const shadow = { maxLoad: 100, maxInFlight: 1000 };
  const steps = [step(50, 5), step(100, 5)];
  it.each<[string, Parameters<typeof bench>[0], Partial<RolloutOptions>, Kind]>([
    ["every second request", (_, count) => count % 2 === 0, { steps }, {}],
    ["one input in ten", (x) => x % 10 === 7, { steps }, {}],
    [
      "every second request, whose callers leave",
      (_, count) => count % 2 === 0,
      { steps },
      { patienceMs: 500 },
    ],
    [
      "every second request, whose callers leave early",
      (_, count) => count % 2 === 0,
      { steps },
      { patienceMs: 100 },
    ],
    ["copies of one input in ten", (x) => x % 10 === 7, { steps: [step(0, 5), ...steps], shadow }, {}],
    ["the second request of a sequence", (x) => x % 4 === 1, { steps }, { sequence: true }],
  ])("%s", async (_, hangs, options, kind) => {
    const server = await bench(hangs, kind);
    const rollout = await start(server, options);
    await send(server, 240, kind);
    expect(rollout.report()).toMatchObject({ state: "running", step: 0 });
    expect(rollout.report().waitsFor).toMatch(/in flight, the oldest for|the callers of \d+ of \d+ requests/);
  });

  it("and counts no call that was given up before it was sent", async () => {
    const server = await bench(() => true);
    const rollout = await start(server, { share: 100 });
    const given = server.triton.infer("m", { x: [[1]] }, { signal: AbortSignal.abort() });
    await expect(given).rejects.toThrow("cancelled");
    expect(rollout.report().inFlight).toBe(0);
  });

  it("passes once the hanging requests have ended", async () => {
    const server = await bench((_, count) => count === 3);
    const rollout = await start(server, { steps: [step(50, 5)] });
    const left = new AbortController();
    for (let i = 0; i < 8; i++) {
      server.triton.infer("m", { x: [[i]] }, { signal: left.signal }).catch(() => {});
      await server.clock.advance(1000);
    }
    await send(server, 60);
    expect(rollout.report().waitsFor).toContain("in flight, the oldest for");
    // One caller that leaves does not hold the step.
    left.abort();
    expect(rollout.state).toBe("promoted");
  });
});

describe("a version that answers is promoted", () => {
  it.each<[string, Partial<RolloutOptions>, Kind]>([
    ["by counted requests and copies", { steps: [step(0, 20), step(50, 20)], shadow: { maxLoad: 100 } }, {}],
    ["by time", { steps: [step(50), step(100)] }, {}],
    ["with sequences", { steps: [step(50, 5)] }, { sequence: true }],
    [
      "where callers of both versions leave",
      { steps: [step(50, 5)], verdict: { latency: false } },
      { patienceMs: 5 },
    ],
  ])("%s", async (_, options, kind) => {
    const server = await bench(() => false, kind);
    const rollout = await start(server, options);
    await send(server, 200, kind);
    if (kind.patienceMs !== undefined) {
      expect(rollout.state).toBe("running");
      await send(server, 200);
    }
    expect(rollout.state).toBe("promoted");
  });
});

const MOST_REQUESTS = 1000;

describe("a planted fault is rolled back within 1,000 requests", () => {
  // The long layer has twenty seeds, in verdicts.long.test.ts.
  it.each(Object.entries(PLANTED_FAULTS))("%s", async (_, fault) => {
    const { needed, checks } = await rollbackOf(fault, 1, MOST_REQUESTS + 1);
    expect(needed).toBeLessThanOrEqual(MOST_REQUESTS);
    expect(checks).toEqual([fault.check]);
  });
});
