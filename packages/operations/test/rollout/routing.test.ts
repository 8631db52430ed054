import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batch } from "@tritonjs/core";
import { isShadow, type RolloutEvent, type RolloutOptions } from "@tritonjs/operations/rollout";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { RollingTriton } from "../../../../test/support/rolling-triton.js";

const X = [{ name: "x", dtype: "FP32", shape: [1] }] as const;
const VERSION = [{ name: "version", dtype: "INT32", shape: [1] }] as const;

const open: RollingTriton[] = [];

afterEach(async () => {
  for (const triton of open.splice(0)) await triton.close();
});

const clocks = new WeakMap<RollingTriton, VirtualClock>();

function server(versions: readonly number[] = [1, 2], clock = new VirtualClock()): RollingTriton {
  const triton = new RollingTriton({
    clock,
    allowCpuMetrics: false,
    logInfo: false,
    logWarning: false,
    logError: false,
  });
  open.push(triton);
  clocks.set(triton, clock);
  for (const modelVersion of versions) bindVersion(triton, modelVersion);
  return triton;
}

/** Binds version 2 of `m`, whose answers take this long. */
function bindSlowVersion(triton: RollingTriton, clock: VirtualClock, takesMs: number, config = {}): void {
  triton.bind({
    modelName: "m",
    modelVersion: 2,
    inputs: X,
    outputs: VERSION,
    inferFunc: batch(async ({ x }) => {
      await new Promise<void>((done) => clock.setTimer(takesMs, done));
      return { version: Array.from({ length: x.shape[0]! }, () => [2]) };
    }),
    config: { maxBatchSize: 4, ...config },
  });
}

function bindVersion(triton: RollingTriton, modelVersion: number, config = {}) {
  return triton.bind({
    modelName: "m",
    modelVersion,
    inputs: X,
    outputs: VERSION,
    inferFunc: batch(({ x }) => ({ version: Array.from({ length: x.shape[0]! }, () => [modelVersion]) })),
    config: { maxBatchSize: 4, ...config },
  });
}

/** Lets a call end that waits for the turn of its batch. */
async function settled<T>(triton: RollingTriton, call: Promise<T>): Promise<T> {
  call.catch(() => {});
  await clocks.get(triton)?.advance(0);
  return call;
}

async function versionOf(triton: RollingTriton, parameters = {}, options = {}): Promise<number> {
  const { version } = await settled(triton, triton.infer("m", { x: [[1]] }, { parameters, ...options }));
  return version!.data[0] as number;
}

async function counts(triton: RollingTriton, count: number): Promise<Record<number, number>> {
  const all: Record<number, number> = {};
  for (let i = 0; i < count; i++) {
    const version = await versionOf(triton);
    all[version] = (all[version] ?? 0) + 1;
  }
  return all;
}

async function faultOf(start: Promise<unknown>): Promise<string> {
  return start.then(
    () => "no fault",
    (error: Error) => error.message,
  );
}

describe("a rollout divides requests without a version", () => {
  it("by the share, and lets the old version answer all of them at 0%", async () => {
    const triton = server();
    await triton.ready();
    expect(await counts(triton, 10)).toEqual({ 2: 10 });
    const rollout = await triton.rollout("m", { from: 1, to: 2, seed: 1 });
    expect(await counts(triton, 10)).toEqual({ 1: 10 });
    rollout.setShare(30);
    const { 2: fresh } = await counts(triton, 400);
    expect(fresh).toBeGreaterThan(95);
    expect(fresh).toBeLessThan(145);
  });

  it("leaves requests that name a version alone", async () => {
    const triton = server();
    const handle = bindVersion(triton, 3);
    await triton.ready();
    await triton.rollout("m", { from: 1, to: 2, share: 0 });
    expect(await versionOf(triton, {}, { modelVersion: 2 })).toBe(2);
    expect((await settled(triton, handle.infer({ x: [[1]] }))).version.data[0]).toBe(3);
  });

  it("keeps the version of a key while the share grows", async () => {
    const triton = server();
    await triton.ready();
    const rollout = await triton.rollout("m", { from: 1, to: 2, share: 20, key: "parameter:user" });
    const users = Array.from({ length: 200 }, (_, i) => `user-${i}`);
    const versions = async () => Promise.all(users.map((user) => versionOf(triton, { user })));
    const first = await versions();
    expect(await versions()).toEqual(first);
    rollout.setShare(60);
    const second = await versions();
    for (const [i, version] of first.entries()) if (version === 2) expect(second[i]).toBe(2);
    expect(second.filter((version) => version === 2).length).toBeGreaterThan(90);
  });

  it("takes the key from a function, and chance where there is none", async () => {
    const triton = server();
    await triton.ready();
    const key: RolloutOptions["key"] = ({ parameters }) => {
      if (parameters.broken === true) throw new Error("no key");
      return parameters.user as string | undefined;
    };
    await triton.rollout("m", { from: 1, to: 2, share: 50, key });
    const first = await versionOf(triton, { user: "a" });
    for (let i = 0; i < 20; i++) expect(await versionOf(triton, { user: "a" })).toBe(first);
    const all = await Promise.all(Array.from({ length: 50 }, () => versionOf(triton, { broken: true })));
    expect(new Set(all)).toEqual(new Set([1, 2]));
  });

  it("applies to ensembles and to models that call others", async () => {
    const triton = server();
    triton.bindEnsemble({
      modelName: "outer",
      inputs: X,
      outputs: VERSION,
      steps: [{ modelName: "m", inputMap: { x: "x" }, outputMap: { version: "version" } }],
    });
    triton.bind({
      modelName: "caller",
      inputs: X,
      outputs: VERSION,
      inferFunc: async (requests, context) =>
        Promise.all(
          requests.map(async ({ inputs }) => {
            const answer = await context.infer("m", { x: inputs.x! });
            return { version: answer.version as never };
          }),
        ),
      config: { maxBatchSize: 4 },
    });
    await triton.ready();
    const rollout = await triton.rollout("m", { from: 1, to: 2, share: 0 });
    const ask = async (name: string) =>
      (await settled(triton, triton.infer(name, { x: [[1]] }))).version!.data[0];
    expect([await ask("outer"), await ask("caller")]).toEqual([1, 1]);
    rollout.promote();
    expect([await ask("outer"), await ask("caller")]).toEqual([2, 2]);
  });
});

describe("the state of a rollout", () => {
  it("moves over the steps, waits while it is paused, and is promoted at the end", async () => {
    const clock = new VirtualClock();
    const triton = server([1, 2], clock);
    await triton.ready();
    const events: string[] = [];
    const diagnosed: string[] = [];
    const diagnose = (event: unknown) => void diagnosed.push((event as RolloutEvent).type);
    subscribe("tritonjs:rollout", diagnose);
    const rollout = await triton.rollout("m", {
      from: 1,
      to: 2,
      steps: [
        { share: 1, forSeconds: 60 },
        { share: 50, forSeconds: 60, minRequests: 5 },
      ],
    });
    rollout.onEvent(({ type }) => events.push(type));
    await clock.advance(30_000);
    expect(rollout.report()).toMatchObject({ share: 1, step: 0, nextStepInSeconds: 30 });
    rollout.pause();
    await clock.advance(600_000);
    expect(rollout.share).toBe(1);
    rollout.resume();
    await clock.advance(29_000);
    expect(rollout.share).toBe(1);
    await clock.advance(1_000);
    expect(rollout.share).toBe(50);
    // The step has to see 5 requests of the new version.
    await clock.advance(120_000);
    expect(rollout.state).toBe("running");
    await counts(triton, 50);
    await clock.advance(0);
    expect(rollout.state).toBe("promoted");
    expect(await counts(triton, 5)).toEqual({ 2: 5 });
    expect(events).toEqual(["paused", "resumed", "step", "promoted"]);
    expect(diagnosed).toEqual(["started", ...events]);
    unsubscribe("tritonjs:rollout", diagnose);
  });

  it("sends all requests to the old version after a roll back, until it is removed", async () => {
    const triton = server();
    await triton.ready();
    const rollout = await triton.rollout("m", { to: 2, from: 1, share: 50 });
    rollout.rollBack("the operator");
    expect(await counts(triton, 5)).toEqual({ 1: 5 });
    expect(() => rollout.promote()).toThrow("cannot promote the rollout of model 'm' from version 1 to 2");
    rollout.remove();
    expect(await counts(triton, 5)).toEqual({ 2: 5 });
    expect((await triton.rollout("m", { from: 1, to: 2 })).state).toBe("running");
  });

  it("survives a restart where a directory is given", async () => {
    const directory = await mkdtemp(join(tmpdir(), "rollouts-"));
    const options: RolloutOptions = {
      from: 1,
      to: 2,
      key: "parameter:user",
      directory,
      steps: [
        { share: 10, forSeconds: 100 },
        { share: 40, forSeconds: 100 },
      ],
    };
    const users = Array.from({ length: 50 }, (_, i) => ({ user: `user-${i}` }));
    const clock = new VirtualClock();
    const first = server([1, 2], clock);
    await first.ready();
    const before = await first.rollout("m", options);
    await clock.advance(150_000);
    const versions = await Promise.all(users.map((user) => versionOf(first, user)));
    expect(before.verdict().new.requests + before.verdict().old.requests).toBe(50);
    await first.close();

    const later = new VirtualClock();
    const second = server([1, 2], later);
    await second.ready();
    const after = await second.rollout("m", options);
    expect(after.report()).toMatchObject({ share: 40, step: 1, nextStepInSeconds: 50 });
    expect(after.verdict().old.requests + after.verdict().new.requests).toBe(50);
    expect(await Promise.all(users.map((user) => versionOf(second, user)))).toEqual(versions);
    after.rollBack("a fault");
    await second.close();

    // Without a call of the program, the server resumes what its directory has.
    const third = new RollingTriton({ allowCpuMetrics: false, logInfo: false, directory });
    open.push(third);
    for (const version of [1, 2]) bindVersion(third, version);
    await third.ready();
    await expect.poll(() => versionOf(third)).toBe(1);
    expect((await third.rollout("m", options)).state).toBe("rolled_back");
    await third.close();
    expect(await readdir(directory)).toEqual(["m.rollout.json"]);
    await rm(directory, { recursive: true });
  });

  it("goes on when its directory vanishes", async () => {
    const directory = await mkdtemp(join(tmpdir(), "rollouts-"));
    const triton = server();
    await triton.ready();
    const rollout = await triton.rollout("m", { from: 1, to: 2, directory });
    // The first save may be under way, and puts a file into what is being removed.
    await rm(directory, { recursive: true, force: true, maxRetries: 10 });
    rollout.setShare(100);
    expect(await versionOf(triton)).toBe(2);
    await triton.close();
  });

  it("is rolled back when the new version leaves in the middle", async () => {
    const triton = server([1]);
    const fresh = bindVersion(triton, 2);
    await triton.ready();
    const rollout = await triton.rollout("m", { from: 1, to: 2, share: 100 });
    expect(await versionOf(triton)).toBe(2);
    await fresh.unbind();
    expect(rollout.state).toBe("rolled_back");
    expect(rollout.verdict().reasons.map(({ check }) => check)).toEqual(["availability"]);
    expect(await versionOf(triton)).toBe(1);
  });

  it("shows in the metrics", async () => {
    const triton = server();
    await triton.ready();
    await triton.rollout("m", { from: 1, to: 2, share: 25 });
    await counts(triton, 4);
    const text = await serviceOf(triton).metrics();
    expect(text).toContain('tritonjs_rollout_share{model="m",from="1",to="2"} 25');
    expect(text).toMatch(/tritonjs_rollout_requests_total\{model="m",from="1",to="2",version="1"\} \d/);
  });
});

describe("sequences stay on their version", () => {
  it("while the share changes, and after the end of the rollout", async () => {
    const triton = server([]);
    for (const version of [1, 2]) bindVersion(triton, version, { sequence: {} });
    await triton.ready();
    const send = (id: number, flags = {}) => versionOf(triton, {}, { sequence: { id, ...flags } });
    const rollout = await triton.rollout("m", { from: 1, to: 2, share: 50 });
    const ids = Array.from({ length: 8 }, (_, i) => i + 1);
    const first: number[] = [];
    for (const id of ids.slice(0, 4)) first.push(await send(id, { start: true }));
    rollout.setShare(0);
    for (const [i, id] of ids.slice(0, 4).entries()) expect(await send(id)).toBe(first[i]);
    rollout.promote();
    for (const [i, id] of ids.slice(0, 4).entries()) expect(await send(id, { end: true })).toBe(first[i]);
    expect(await send(9, { start: true, end: true })).toBe(2);
  });
});

describe("shadows", () => {
  it("get a copy after the answer, can be told apart, and change no answer", async () => {
    const clock = new VirtualClock();
    const triton = server([1], clock);
    const seen: boolean[] = [];
    triton.bind({
      modelName: "m",
      modelVersion: 2,
      inputs: X,
      outputs: VERSION,
      inferFunc: (requests) =>
        requests.map((request) => {
          seen.push(isShadow(request));
          return { version: [[2]] };
        }),
      config: { maxBatchSize: 4 },
    });
    await triton.ready();
    const rollout = await triton.rollout("m", {
      from: 1,
      to: 2,
      shadow: { every: 2, maxLoad: 100 },
      verdict: { onFault: "report" },
    });
    for (let i = 0; i < 10; i++) {
      expect(await versionOf(triton)).toBe(1);
      await clock.advance(10);
    }
    expect(seen).toEqual([true, true, true, true, true]);
    const { shadow, agreement, new: fresh } = rollout.verdict();
    expect(shadow).toEqual({ answered: 5, errors: 0, shed: 0 });
    expect(agreement).toEqual([{ output: "version", compared: 5, disagreements: 5 }]);
    expect(fresh.requests).toBe(0);
  });

  it("are at most as many at a time as the limit says", async () => {
    const clock = new VirtualClock();
    const triton = server([1], clock);
    bindSlowVersion(triton, clock, 1000, { maxBatchSize: 1, instanceGroup: { count: 4 } });
    await triton.ready();
    const shadow = { maxLoad: 100, maxInFlight: 2 };
    const rollout = await triton.rollout("m", { from: 1, to: 2, shadow });
    for (let i = 0; i < 4; i++) {
      await versionOf(triton);
      await clock.advance(1);
    }
    await clock.advance(5000);
    expect(rollout.verdict().shadow).toEqual({ answered: 2, errors: 0, shed: 2 });
  });

  it("are shed while the instances of the new version are busy with requests, and never make one wait", async () => {
    const clock = new VirtualClock();
    const triton = server([1], clock);
    const ran: ("shadow" | "request")[] = [];
    triton.bind({
      modelName: "m",
      modelVersion: 2,
      inputs: X,
      outputs: VERSION,
      inferFunc: async (requests) => {
        for (const request of requests) ran.push(isShadow(request) ? "shadow" : "request");
        await new Promise<void>((done) => clock.setTimer(100, done));
        return requests.map(() => ({ version: [[2]] }));
      },
      config: { maxBatchSize: 4 },
    });
    await triton.ready();
    const rollout = await triton.rollout("m", { from: 1, to: 2, shadow: { maxLoad: 100 } });
    const direct = triton.infer("m", { x: [[1]] }, { modelVersion: 2 });
    for (let i = 0; i < 8; i++) {
      expect(await versionOf(triton)).toBe(1);
      await clock.advance(10);
    }
    expect(ran).toEqual(["request"]);
    expect(rollout.verdict().shadow).toEqual({ answered: 0, errors: 0, shed: 8 });
    await clock.advance(100);
    await direct;
    await versionOf(triton);
    await clock.advance(1);
    expect(ran).toEqual(["request", "shadow"]);
    await clock.advance(200);
    expect(rollout.verdict().shadow).toEqual({ answered: 1, errors: 0, shed: 8 });
  });

  it("are shed while the old version runs another request, and are made of none that arrives behind one", async () => {
    const clock = new VirtualClock();
    const triton = server([2], clock);
    triton.bind({
      modelName: "m",
      modelVersion: 1,
      inputs: X,
      outputs: VERSION,
      inferFunc: async (requests) => {
        await new Promise<void>((done) => clock.setTimer(100, done));
        return requests.map(() => ({ version: [[1]] }));
      },
      config: { maxBatchSize: 1 },
    });
    await triton.ready();
    const rollout = await triton.rollout("m", { from: 1, to: 2, shadow: { maxLoad: 100 } });
    const shadows = () => rollout.verdict().shadow;
    // The second runs when the first is answered. The third arrives while the second waits.
    const three = [1, 2, 3].map(() => versionOf(triton));
    expect(shadows().shed).toBe(1);
    await clock.advance(101);
    expect(shadows()).toEqual({ answered: 0, errors: 0, shed: 2 });
    await clock.advance(300);
    await Promise.all(three);
    const last = versionOf(triton);
    await clock.advance(101);
    await last;
    expect(shadows()).toEqual({ answered: 1, errors: 0, shed: 3 });
  });

  it("do not change the latency of the old version on a virtual clock, by a single tick", async () => {
    const timesOf = async (shadow: boolean) => {
      const clock = new VirtualClock();
      const triton = server([], clock);
      for (const modelVersion of [1, 2]) {
        triton.bind({
          modelName: "m",
          modelVersion,
          inputs: X,
          outputs: VERSION,
          inferFunc: batch(async ({ x }) => {
            await new Promise<void>((done) => clock.setTimer(5, done));
            return { version: Array.from({ length: x.shape[0]! }, () => [1]) };
          }),
          config: { maxBatchSize: 4 },
        });
      }
      await triton.ready();
      await triton.rollout("m", { from: 1, to: 2, shadow: shadow && { maxLoad: 100 }, seed: 1 });
      const times: number[] = [];
      const asked: Promise<unknown>[] = [];
      for (let i = 0; i < 200; i++) {
        const since = clock.now();
        asked.push(versionOf(triton).then(() => times.push(clock.now() - since)));
        await clock.advance(1 + ((i * 7919) % 6));
      }
      await clock.advance(1000);
      await Promise.all(asked);
      return times;
    };
    expect(await timesOf(true)).toEqual(await timesOf(false));
  });
});

describe("a rollout in the middle of other things", () => {
  it("takes no shadow of an answer from the response cache, and counts no error", async () => {
    const clock = new VirtualClock();
    const triton = new RollingTriton({ clock, allowCpuMetrics: false, responseCache: { byteSize: 1e6 } });
    open.push(triton);
    clocks.set(triton, clock);
    for (const version of [1, 2]) bindVersion(triton, version, { responseCache: true });
    await triton.ready();
    const rollout = await triton.rollout("m", {
      from: 1,
      to: 2,
      shadow: { maxLoad: 100 },
      verdict: { onFault: "report" },
    });
    for (let i = 0; i < 5; i++) await versionOf(triton);
    await clock.advance(10);
    expect(rollout.verdict().shadow).toEqual({ answered: 1, errors: 0, shed: 0 });
    expect(rollout.verdict().old).toMatchObject({ requests: 5, errors: 0 });
  });

  it("counts no cancelled request as an error", async () => {
    const clock = new VirtualClock();
    const triton = server([1, 2], clock);
    await triton.ready();
    const rollout = await triton.rollout("m", { from: 1, to: 2, share: 100 });
    const gone = new AbortController();
    const call = triton.infer("m", { x: [[1]] }, { signal: gone.signal });
    gone.abort();
    await expect(call).rejects.toThrow("cancelled");
    expect(rollout.verdict().new).toMatchObject({ requests: 0, errors: 0 });
  });

  it("is saved as it was when the server closes, with requests and shadows in flight", async () => {
    const directory = await mkdtemp(join(tmpdir(), "rollouts-"));
    const clock = new VirtualClock();
    const triton = server([1], clock);
    bindSlowVersion(triton, clock, 500);
    await triton.ready();
    await triton.rollout("m", { from: 1, to: 2, share: 50, shadow: { maxLoad: 100 }, directory });
    const calls = Array.from({ length: 20 }, () => triton.infer("m", { x: [[1]] }));
    await clock.advance(1);
    const closed = triton.close();
    await clock.advance(10_000);
    await closed;
    expect((await Promise.allSettled(calls)).every(({ status }) => status === "fulfilled")).toBe(true);
    const later = server([1, 2]);
    await later.ready();
    expect((await later.rollout("m", { from: 1, to: 2, share: 50, directory })).state).toBe("running");
    await rm(directory, { recursive: true });
  });
});

describe("bad input of a rollout is refused", () => {
  it.each<[Partial<RolloutOptions>, string]>([
    [{ to: 3 }, "version 3 is not in service: expected one of [1, 2]"],
    [{ from: 7, to: 2 }, "version 7 is not in service"],
    [{ to: 1, from: 1 }, "expected two different versions, got 1 as both"],
    [{ to: 2, share: 101 }, "option 'share': expected a percentage from 0 to 100, got 101"],
    [{ to: 2, share: Number.NaN }, "option 'share'"],
    [{ to: 2, steps: [{ share: 120, forSeconds: 1 }] }, "option 'steps[0].share'"],
    [{ to: 2, share: 5, steps: [{ share: 1, forSeconds: 1 }] }, "has a share and steps"],
    [{ to: 2, key: "cookie:x" as never }, "option 'key'"],
    [{ to: 2, shadow: { every: 0 } }, "option 'shadow.every'"],
    [{ to: 2, verdict: { agreement: { by: "closest" as never } } }, "option 'verdict.agreement.by'"],
    [{ to: 2, verdict: { alpha: 2 } }, "option 'verdict.alpha'"],
    [{ to: 2, unknown: 1 } as never, "unknown"],
    [{} as never, "option 'to'"],
    [{ to: 2, directory: "/dev/null/x" }, "cannot make the directory of rollouts"],
  ])("%j", async (options, text) => {
    const triton = server();
    await triton.ready();
    expect(await faultOf(triton.rollout("m", { from: 1, ...options } as RolloutOptions))).toContain(text);
    expect(await versionOf(triton)).toBe(2);
  });

  it("a second rollout of a model, two at once, and an unknown model", async () => {
    const triton = server();
    await triton.ready();
    const both = await Promise.allSettled([
      triton.rollout("m", { from: 1, to: 2 }),
      triton.rollout("m", { from: 1, to: 2 }),
    ]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(await faultOf(triton.rollout("m", { from: 2, to: 1 }))).toBe(
      "model 'm' has a rollout from version 1 to 2: promote it or roll it back first",
    );
    expect(await faultOf(triton.rollout("none", { to: 2 }))).toContain(
      "expected a version, got none in service",
    );
  });

  it("a version with other tensors, with the difference", async () => {
    const triton = server([1]);
    triton.bind({
      modelName: "m",
      modelVersion: 2,
      inputs: [{ name: "x", dtype: "FP64", shape: [2] }],
      outputs: [{ name: "label", dtype: "INT32", shape: [1] }],
      inferFunc: batch(({ x }) => ({ label: Array.from({ length: x.shape[0]! }, () => [2]) })),
      config: { maxBatchSize: 4 },
    });
    await triton.ready();
    expect(await faultOf(triton.rollout("m", { from: 1, to: 2 }))).toBe(
      "cannot roll out version 2 of model 'm': it differs from version 1: " +
        "input 'x': expected FP32 [1], got FP64 [2]; output 'version': expected INT32 [1], got none; " +
        "output 'label': expected none, got INT32 [1]",
    );
  });

  it("shadows of a model with sequences", async () => {
    const triton = server([]);
    for (const version of [1, 2]) bindVersion(triton, version, { sequence: {} });
    await triton.ready();
    expect(await faultOf(triton.rollout("m", { from: 1, to: 2, shadow: true }))).toContain(
      "it has sequences",
    );
  });
});
