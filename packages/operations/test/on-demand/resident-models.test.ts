import { Triton } from "@tritonjs/core";
import type { BackendFactory, Execution } from "@tritonjs/core/backend";
import { modelsOnDemand, type OnDemandOptions } from "@tritonjs/operations/on-demand";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { type ServedOptions, servedOptions } from "../../../../test/support/served-options.js";

const open: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** A backend that knows which of its models are in memory, and that a test holds, fails or lets call others. */
class Memory {
  readonly inMemory = new Set<string>();
  most = 0;
  loads: string[] = [];
  broken = new Set<string>();
  /** Called in each execution, before its answer. */
  during: (name: string, execution: Execution) => Promise<void> = async () => {};

  readonly factory: BackendFactory = ({ name }) => ({
    backendName: "memory",
    platform: "",
    describe: () => undefined,
    createExecutor: () => ({
      details: {},
      mustFinish: false,
      start: async () => {
        if (this.broken.has(name)) throw new Error(`the file of ${name} is broken`);
        this.loads.push(name);
        this.inMemory.add(name);
        this.most = Math.max(this.most, this.inMemory.size);
      },
      execute: async (execution) => {
        if (!this.inMemory.has(name)) throw new Error(`${name} is not in memory`);
        await this.during(name, execution);
        return execution.requests.map(({ inputs }) => new Map([["OUTPUT0", inputs.get("INPUT0")!]]));
      },
      stop: async () => void this.inMemory.delete(name),
    }),
  });
}

async function server(
  models: Readonly<Record<string, string>>,
  options: OnDemandOptions = {},
  clock?: VirtualClock,
  more: ServedOptions = {},
) {
  const files = Object.entries(models).flatMap(([name, more]) => [
    [`${name}/config.pbtxt`, identityConfig(more).replace('"identity"', '"memory"')],
    [`${name}/1/`, ""],
  ]);
  const onDisk = await RepositoryOnDisk.create(Object.fromEntries(files));
  const memory = new Memory();
  const triton = new Triton(
    servedOptions({
      modelRepository: onDisk.path,
      backends: { memory: memory.factory },
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      ...(clock && { clock, allowCpuMetrics: false }),
      ...more,
      extensions: [modelsOnDemand(options)],
    }),
  );
  open.push(
    () => onDisk[Symbol.asyncDispose](),
    () => triton.close(),
  );
  await triton.ready();
  return { triton, memory, onDisk };
}

const parameter = (key: string, value: string) =>
  `parameters { key: "${key}" value { string_value: "${value}" } } `;
const names = (count: number) => Array.from({ length: count }, (_, i) => `m${i}`);
const repository = (count: number, more = "") => Object.fromEntries(names(count).map((name) => [name, more]));
const ask = async (triton: Triton, name: string, value = 1) =>
  [...(await triton.infer(name, { INPUT0: [[value]] })).OUTPUT0!.data][0];

describe("models on demand", () => {
  it("loads a model at its first request, and says in the index and in its readiness what is on disk only", async () => {
    const { triton, memory } = await server(repository(2), { loadOnDemand: true });
    const reason = "on disk only: it loads at the first request";
    expect(memory.loads).toEqual([]);
    expect(await serviceOf(triton).repositoryIndex(true)).toEqual([
      { name: "m0", version: "1", state: "READY", reason },
      { name: "m1", version: "1", state: "READY", reason },
    ]);
    expect(serviceOf(triton).isReady()).toBe(true);
    expect(await serviceOf(triton).modelReadiness("m0", "")).toEqual({ ready: true, reason });
    const answers = await Promise.all([1, 2, 3].map((value) => ask(triton, "m0", value)));
    expect(answers).toEqual([1, 2, 3]);
    expect(memory.loads).toEqual(["m0"]);
    expect(await serviceOf(triton).modelReadiness("m0", "")).toEqual({ ready: true, reason: "" });
    expect((await serviceOf(triton).repositoryIndex(true))[0]).toEqual({
      name: "m0",
      version: "1",
      state: "READY",
    });
  });

  it("loads at the start what its configuration says, and at once what is loaded by name", async () => {
    const models = { m0: parameter("load_on_demand", "false"), m1: "", m2: "" };
    const { memory } = await server(models, { loadOnDemand: true });
    expect(memory.loads).toEqual(["m0"]);
    const explicit = await server({ m0: "", m1: parameter("load_on_demand", "true") }, {}, undefined, {
      modelControlMode: "explicit",
      loadModel: ["*"],
    });
    expect(explicit.memory.loads).toEqual(["m0"]);
    await explicit.triton.loadModel("m1");
    expect(explicit.memory.loads).toEqual(["m0", "m1"]);
  });

  it("fails requests to a model that cannot be loaded, is not ready, and tries again later", async () => {
    const clock = new VirtualClock();
    const { triton, memory } = await server(repository(1), { loadOnDemand: true }, clock);
    memory.broken.add("m0");
    const text = "model 'm0' version 1 could not be loaded for a request: the file of m0 is broken";
    const results = await Promise.allSettled([ask(triton, "m0"), ask(triton, "m0")]);
    for (const one of results) expect(one).toMatchObject({ status: "rejected", reason: { message: text } });
    expect(await serviceOf(triton).modelReadiness("m0", "")).toEqual({ ready: false, reason: text });
    expect(await serviceOf(triton).repositoryIndex(false)).toEqual([
      { name: "m0", version: "1", state: "UNAVAILABLE", reason: text },
    ]);
    memory.broken.clear();
    await expect(ask(triton, "m0")).rejects.toThrow(text);
    await clock.advance(1000);
    expect(await ask(triton, "m0")).toBe(1);
    expect((await serviceOf(triton).modelReadiness("m0", "")).ready).toBe(true);
  });

  it("answers a request that comes while its model is unloaded with the rest of the server", async () => {
    const { triton, memory } = await server(repository(1), { loadOnDemand: true });
    const answer = ask(triton, "m0");
    await Promise.all([answer, triton.close()]);
    expect(memory.inMemory.size).toBe(0);
  });
});

describe("the time to live", () => {
  it("takes a model out of memory after it had no request, and not while a request runs", async () => {
    const clock = new VirtualClock();
    const { triton, memory } = await server(
      { m0: "", m1: parameter("ttl_seconds", "30") },
      { modelTtlSecs: 10 },
      clock,
    );
    expect([...memory.inMemory].sort()).toEqual(["m0", "m1"]);
    await clock.advance(8000);
    await ask(triton, "m0");
    await clock.advance(8000);
    expect([...memory.inMemory].sort()).toEqual(["m0", "m1"]);
    let answer = () => {};
    memory.during = () => new Promise((resolve) => (answer = resolve));
    const running = ask(triton, "m0");
    await clock.advance(20_000);
    expect([...memory.inMemory]).toEqual(["m0"]);
    answer();
    await running;
    await clock.advance(20_000);
    expect([...memory.inMemory]).toEqual([]);
    memory.during = async () => {};
    expect(await ask(triton, "m0", 7)).toBe(7);
    const page = await triton.metrics.metrics();
    expect(page).toContain('tritonjs_model_evictions_total{model="m0",version="1",reason="ttl"} 1');
    expect(page).toContain('tritonjs_model_loads_total{model="m0",version="1"} 2');
    expect(page).toContain('tritonjs_model_resident{model="m1",version="1"} 0');
  });

  it("keeps a model with an open sequence", async () => {
    const clock = new VirtualClock();
    const { triton, memory } = await server(
      { m0: "sequence_batching { max_sequence_idle_microseconds: 60000000 }" },
      { modelTtlSecs: 10 },
      clock,
    );
    const step = async (start: boolean, end: boolean) => {
      const answer = triton.infer("m0", { INPUT0: [[1]] }, { sequence: { id: 7, start, end } });
      // The batcher waits for the other requests of a turn of the event loop.
      for (let turn = 0; turn < 5; turn++) await clock.advance(0);
      await answer;
    };
    await step(true, false);
    await clock.advance(50_000);
    expect([...memory.inMemory]).toEqual(["m0"]);
    await step(false, true);
    await clock.advance(50_000);
    expect([...memory.inMemory]).toEqual([]);
    await step(true, true);
    expect([...memory.inMemory]).toEqual(["m0"]);
  });
});

describe("the memory budget", () => {
  it("loses no request while 50 models share room for 5, and never has more in memory", async () => {
    const { triton, memory } = await server(repository(50, parameter("memory_mb", "10")), {
      modelMemoryBudgetMb: 50,
    });
    expect(memory.loads).toHaveLength(5);
    const asked = Array.from({ length: 500 }, (_, i) => i);
    let next = 0;
    const client = async () => {
      for (let i = next++; i < asked.length; i = next++) {
        const name = `m${(i * 7919 + (i >> 3)) % 50}`;
        expect(await ask(triton, name, i)).toBe(i);
      }
    };
    await Promise.all(Array.from({ length: 8 }, client));
    expect(memory.most).toBeLessThanOrEqual(5);
    expect(memory.loads.length).toBeGreaterThan(50);
  });

  it("replaces the idle model of the least value: its requests times the duration of its load, for each byte", async () => {
    const clock = new VirtualClock();
    const { triton, memory } = await server(
      { ...repository(3, parameter("memory_mb", "10")), m3: parameter("memory_mb", "10") },
      { modelMemoryBudgetMb: 30, loadOnDemand: true },
      clock,
    );
    for (let i = 0; i < 5; i++) await ask(triton, "m0");
    for (let i = 0; i < 2; i++) await ask(triton, "m1");
    for (let i = 0; i < 9; i++) await ask(triton, "m2");
    await ask(triton, "m3");
    expect([...memory.inMemory].sort()).toEqual(["m0", "m2", "m3"]);
  });

  it("asks a busy model to leave after a second, and answers the requests in its queue later", async () => {
    const clock = new VirtualClock();
    const { triton, memory } = await server(
      repository(2, parameter("memory_mb", "10")),
      { modelMemoryBudgetMb: 10, loadOnDemand: true },
      clock,
    );
    const answers: (() => void)[] = [];
    memory.during = () => new Promise((resolve) => void answers.push(resolve));
    const asked = [ask(triton, "m0", 1), ask(triton, "m0", 2), ask(triton, "m1", 3)];
    await clock.advance(500);
    expect([...memory.inMemory]).toEqual(["m0"]);
    await clock.advance(1000);
    let settled = false;
    const all = Promise.all(asked).finally(() => {
      settled = true;
    });
    while (!settled) {
      for (const answer of answers.splice(0)) answer();
      await clock.advance(1);
    }
    expect(await all).toEqual([1, 2, 3]);
    expect(memory.loads).toEqual(["m0", "m1", "m0"]);
    expect(memory.most).toBe(1);
  });

  it("loads a model that running work waits for, also where there is no room", async () => {
    const { triton, memory } = await server(repository(3, parameter("memory_mb", "10")), {
      modelMemoryBudgetMb: 10,
      loadOnDemand: true,
    });
    memory.during = async (name, { models }) => {
      if (name === "m0") await models.infer("m1", { INPUT0: [[1]] });
      if (name === "m1") await models.infer("m2", { INPUT0: [[1]] });
    };
    expect(await ask(triton, "m0", 4)).toBe(4);
    expect(memory.most).toBe(3);
  });

  it("refuses a model that is larger than the budget, or that models which stay leave no room for", async () => {
    const { triton } = await server(
      {
        m0: parameter("memory_mb", "100"),
        m1: parameter("memory_mb", "20") + parameter("keep_loaded", "true"),
        m2: parameter("memory_mb", "20"),
      },
      { modelMemoryBudgetMb: 30, loadOnDemand: true },
    );
    const text = (mb: number) => `expected room for about ${mb} MB, got modelMemoryBudgetMb=30`;
    await expect(ask(triton, "m0")).rejects.toThrow(text(100));
    await ask(triton, "m1");
    await expect(ask(triton, "m2")).rejects.toThrow(text(20));
    expect(await ask(triton, "m1")).toBe(1);
  });
});

describe("settings of residency", () => {
  it.each([
    [{ modelTtlSecs: 0 }, "option 'modelTtlSecs': expected a number above 0, got 0"],
    [{ modelMemoryBudgetMb: -1 }, "option 'modelMemoryBudgetMb': expected a number above 0, got -1"],
  ])("refuses %j", (options, text) => {
    expect(() => modelsOnDemand(options)).toThrow(text);
  });

  it.each([
    ["ttl_seconds", "soon", "parameter 'ttl_seconds' of model 'm0': expected a number above 0, got 'soon'"],
    ["memory_mb", "-1", "parameter 'memory_mb' of model 'm0': expected a number above 0, got '-1'"],
    ["keep_loaded", "1", "parameter 'keep_loaded' of model 'm0': expected 'true' or 'false', got '1'"],
  ])("refuses the parameter %s with '%s'", async (key, value, text) => {
    await expect(server({ m0: parameter(key, value) })).rejects.toThrow(text);
  });

  it("keeps a reloaded model where it was", async () => {
    const control = { modelControlMode: "explicit", loadModel: ["*"] } as const;
    const { triton, memory, onDisk } = await server(
      repository(2),
      { loadOnDemand: true },
      undefined,
      control,
    );
    await ask(triton, "m0");
    await onDisk.write({ "m0/1/more": "x", "m1/1/more": "x" });
    await triton.loadModel("m0");
    expect(memory.loads).toEqual(["m0", "m0"]);
  });
});
