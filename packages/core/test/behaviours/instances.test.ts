import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  batch,
  type InstanceGroupOptions,
  type ModelOptions,
  Triton,
  type TritonOptions,
} from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/testing";
import { afterEach, describe, expect, it } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";

/** A plain callback that records the instance it runs in. */
function namedEcho(seen: string[]) {
  return async (
    requests: readonly { readonly inputs: { readonly x: { readonly data: Int32Array } } }[],
    context: { readonly instanceName: string; readonly instanceIndex: number },
  ) => {
    seen.push(`${context.instanceName} ${context.instanceIndex}`);
    return requests.map(({ inputs }) => ({ y: inputs.x.data }));
  };
}

describe("instances", () => {
  it("run at the same time, one batch each", async () => {
    const clock = new VirtualClock();
    const model = new EchoModel();
    const handle = await model.bind(new Triton({ clock }), { maxBatchSize: 1 }, 2);
    model.held = true;
    for (const value of [1, 2, 3]) void echo(handle, value);
    await clock.settle();
    expect(model.batches).toEqual([[1], [2]]);
    expect(handle.instances().map(({ busy }) => busy)).toEqual([true, true]);
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[1], [2], [3]]);
  });

  it("are as many as the instance group says for one function, which they all call", async () => {
    const seen: string[] = [];
    const clock = new VirtualClock();
    const handle = new Triton({ clock }).bind({
      modelName: "m",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: namedEcho(seen),
      config: { maxBatchSize: 1, instanceGroup: [{ count: 2 }, { count: 1 }] },
    });
    await handle.ready();
    const answers = [1, 2, 3].map((value) => echo(handle, value));
    await clock.settle();
    expect(await Promise.all(answers)).toEqual([1, 2, 3]);
    expect(seen.sort()).toEqual(["m_0_0 0", "m_0_1 1", "m_1_0 2"]);
    expect(handle.instances().map(({ name, kind, healthy }) => [name, kind, healthy])).toEqual([
      ["m_0_0", "KIND_CPU", true],
      ["m_0_1", "KIND_CPU", true],
      ["m_1_0", "KIND_CPU", true],
    ]);
  });

  it("are one for each function of a list", async () => {
    const seen: string[] = [];
    const clock = new VirtualClock();
    const functions = ["a", "b"].map((name) => {
      const named = namedEcho([]);
      return (...args: Parameters<typeof named>) => {
        seen.push(`${name} as ${args[1].instanceName}`);
        return named(...args);
      };
    });
    const handle = new Triton({ clock }).bind({
      modelName: "m",
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: functions,
      config: { maxBatchSize: 1 },
    });
    await handle.ready();
    void Promise.all([echo(handle, 1), echo(handle, 2)]);
    await clock.settle();
    expect(seen).toEqual(["a as m_0", "b as m_1"]);
  });

  it("must be as many as the functions of a list", () => {
    const bind = () =>
      new Triton().bind({
        modelName: "m",
        inputs: echoInputs,
        outputs: echoOutputs,
        inferFunc: [namedEcho([]), namedEcho([])],
        config: { instanceGroup: { count: 3 } },
      });
    expect(thrownBy(bind)).toContain(
      "inferFunc has 2 functions, one for each instance, but config.instanceGroup asks for 3 instances",
    );
  });

  it("take the oldest batch when they become idle", async () => {
    const clock = new VirtualClock();
    const model = new EchoModel();
    const handle = await model.bind(new Triton({ clock }), { maxBatchSize: 1 }, 3);
    model.held = true;
    for (let value = 0; value < 9; value++) void echo(handle, value);
    await clock.settle();
    model.releaseAll();
    await clock.settle();
    expect(model.batches.flat()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });
});

/** Models with these instance groups, under a rate limiter; their batches wait for the test. */
async function served(options: TritonOptions, ...models: readonly (readonly InstanceGroupOptions[])[]) {
  const clock = new VirtualClock();
  const triton = new Triton({ clock, rateLimit: "execution_count", ...options });
  const model = new EchoModel();
  const handles = models.map((instanceGroup, i) =>
    triton.bind({
      modelName: `m${i}`,
      inputs: echoInputs,
      outputs: echoOutputs,
      inferFunc: model.callback(),
      config: { maxBatchSize: 1, instanceGroup },
    }),
  );
  for (const handle of handles) await handle.ready();
  model.held = true;
  return { clock, model, handles };
}

const needing = (name: string, count = 1, more: object = {}): InstanceGroupOptions => ({
  rateLimiter: { resources: [{ name, count, ...more }] },
});

describe("instances under a rate limiter", () => {
  it("wait for resources shared by all models", async () => {
    const { clock, model, handles } = await served({}, [needing("other")], [needing("R")], [needing("R")]);
    const answers = handles.map((handle, i) => echo(handle, i));
    await clock.settle();
    expect(model.batches).toEqual([[0], [1]]);
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[0], [1]]);
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[0], [1], [2]]);
    model.releaseAll();
    await clock.settle();
    expect(await Promise.all(answers)).toEqual([0, 1, 2]);
  });

  it("wait in one line, as in Triton: the first waiting instance blocks those behind it", async () => {
    const { clock, model, handles } = await served({}, [needing("R")], [needing("R")], [needing("other")]);
    for (const [i, handle] of handles.entries()) void echo(handle, i);
    await clock.settle();
    expect(model.batches).toEqual([[0]]);
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[0], [1]]);
    model.release();
    await clock.settle();
    expect(model.batches).toEqual([[0], [1], [2]]);
    model.releaseAll();
    await clock.settle();
  });

  it("run together when the resources suffice for several", async () => {
    const { clock, model, handles } = await served({ rateLimitResources: [{ name: "R", count: 2 }] }, [
      { ...needing("R"), count: 3 },
    ]);
    for (const value of [1, 2, 3]) void echo(handles[0]!, value);
    await clock.settle();
    expect(model.batches).toEqual([[1], [2]]);
    model.releaseAll();
    await clock.settle();
    expect(model.batches).toEqual([[1], [2], [3]]);
  });

  it("skip a turn whose request was cancelled meanwhile", async () => {
    const { clock, model, handles } = await served({}, [needing("R")], [needing("R")]);
    const controller = new AbortController();
    const first = echo(handles[0]!, 1);
    await clock.settle();
    const given = outcomeOf(echo(handles[1]!, 2, { signal: controller.signal }));
    await clock.settle();
    const last = echo(handles[0]!, 3);
    await clock.settle();
    controller.abort();
    expect(await given).toBe("CANCELLED the request was cancelled");
    model.releaseAll();
    await clock.settle();
    expect(await Promise.all([first, last])).toEqual([1, 3]);
    expect(model.batches).toEqual([[1], [3]]);
  });

  it("keep their model from loading when they can never run, and do not affect others", async () => {
    const clock = new VirtualClock();
    const resources = { rateLimitResources: [{ name: "R", count: 1 }] };
    const triton = new Triton({ clock, rateLimit: "execution_count", ...resources });
    const model = new EchoModel();
    const bind = (modelName: string, group: InstanceGroupOptions) =>
      triton.bind({
        modelName,
        inputs: echoInputs,
        outputs: echoOutputs,
        inferFunc: model.callback(),
        config: { instanceGroup: group },
      });
    expect(await outcomeOf(bind("greedy", needing("R", 2)).ready())).toBe(
      'INVALID_ARG Resource count for "R" is limited to 1 which will prevent scheduling of one or more model ' +
        "instances, the minimum required count is 2",
    );
    expect(await outcomeOf(bind("modest", needing("R")).ready())).toBe("done");
  });

  it("release their resources when they are removed", async () => {
    const { clock, model, handles } = await served({}, [{ ...needing("R"), count: 2 }], [needing("R")]);
    model.held = false;
    await handles[0]!.updateInstances(1);
    await handles[0]!.unbind();
    const answer = echo(handles[1]!, 1);
    await clock.settle();
    expect(await answer).toBe(1);
  });

  it("log the resource counts on the verbose level, as Triton does", async () => {
    const lines: string[] = [];
    const logger = { error() {}, warn() {}, info() {}, debug: (line: string) => void lines.push(line) };
    const { clock, handles } = await served({ logVerbose: 1, logger }, [
      { ...needing("R", 4), name: "much" },
      {
        rateLimiter: {
          resources: [
            { name: "R", count: 3 },
            { name: "all", count: 1, global: true },
          ],
        },
      },
    ]);
    const limits = () => lines.filter((line) => line.startsWith("Max Resource Map===>")).at(-1);
    const all = "Max Resource Map===>\n\tDevice: GLOBAL\n\t\tResource: all\t Count: 1\n\tDevice: 0\n";
    expect(limits()).toBe(`${all}\t\tResource: R\t Count: 4\n`);
    await handles[0]!.updateInstances(handles[0]!.config().instanceGroup.slice(1));
    await clock.settle();
    expect(limits()).toBe(`${all}\t\tResource: R\t Count: 3\n`);
  });
});

describe("warmup", () => {
  let triton = new Triton();

  afterEach(async () => {
    await triton.close();
    triton = new Triton();
  });

  type Warmup = NonNullable<ModelOptions["modelWarmup"]>;

  /** Binds a model with warm-up samples and records its inputs until it is ready. */
  function bind(modelWarmup: Warmup, config: ModelOptions = {}, fail = false) {
    const seen: number[][] = [];
    const handle = triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "INT32", shape: [2] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [2] }],
      inferFunc: batch(async ({ x }) => {
        seen.push([...x.data]);
        await new Promise((resolve) => setImmediate(resolve));
        if (fail) throw new Error("still cold");
        return { y: x };
      }),
      config: { ...config, modelWarmup },
    });
    return { handle, seen };
  }

  const shape = { dtype: "INT32", shape: [2] } as const;

  describe("warm-up", () => {
    it("runs zeros, random numbers, a file, and given values, before the model is ready", async () => {
      const folder = mkdtempSync(join(tmpdir(), "warmup-"));
      const file = join(folder, "x");
      writeFileSync(file, new Uint8Array(Int32Array.of(5, 6).buffer));
      const { handle, seen } = bind([
        { name: "zeros", inputs: { x: { ...shape, zeroData: true } } },
        { name: "random", inputs: { x: { ...shape, randomData: true } } },
        { name: "file", inputs: { x: { ...shape, inputDataFile: file } } },
        { name: "given", inputs: { x: { ...shape, data: [7, 8] } } },
      ]);
      await handle.ready();
      rmSync(folder, { recursive: true });
      expect(seen.filter((_, i) => i !== 1)).toEqual([
        [0, 0],
        [5, 6],
        [7, 8],
      ]);
      expect(seen[1]).toHaveLength(2);
      await handle.inferSample({ x: [1, 2] });
      expect(seen).toHaveLength(5);
    });

    it("runs a sample count times with batchSize requests, in each instance", async () => {
      const { handle, seen } = bind(
        [
          { name: "three", batchSize: 3, count: 2, inputs: { x: { ...shape, data: Int32Array.of(1, 2) } } },
          { name: "none", batchSize: 0, inputs: { x: shape } },
        ],
        { instanceGroup: { count: 2 } },
      );
      await handle.ready();
      expect(seen).toEqual(Array.from({ length: 4 }, () => [1, 2, 1, 2, 1, 2]));
    });

    it("makes loading fail with the name of a failed sample", async () => {
      const { handle } = bind([{ name: "first", inputs: { x: shape } }], {}, true);
      expect(await outcomeOf(handle.ready())).toBe(
        "INVALID_ARG failed to run warmup sample 'first': still cold; ",
      );
      expect(await outcomeOf(handle.inferSample({ x: [1, 2] }))).toMatch(/^UNAVAILABLE .*still cold/);
    });

    it("rejects a sample with more requests than the largest batch before running it", async () => {
      const sample = { name: "big", batchSize: 3, inputs: { x: shape } };
      const { handle, seen } = bind([sample], { maxBatchSize: 2 });
      const text = "batch size 3 for 'm_0', max allowed is 2; ";
      expect(await outcomeOf(handle.ready())).toBe(
        `INVALID_ARG failed to run warmup sample 'big': ${text.repeat(3)}`,
      );
      expect(seen).toEqual([]);
    });

    it("copies given values at bind, and rejects all invalid ones at once", async () => {
      const data = Int32Array.of(3, 4);
      const { handle, seen } = bind([{ name: "given", inputs: { x: { ...shape, data } } }]);
      data.fill(0);
      await handle.ready();
      expect(seen).toEqual([[3, 4]]);
      const other = () =>
        triton.bind({
          modelName: "other",
          inputs: [{ name: "x", dtype: "INT32", shape: [2] }],
          outputs: [{ name: "y", dtype: "INT32", shape: [2] }],
          inferFunc: batch(({ x }) => ({ y: x })),
          config: {
            modelWarmup: [
              { name: "long", inputs: { x: { ...shape, data: [1, 2, 3] } } },
              { name: "text", inputs: { x: { ...shape, data: ["a", "b"] } } },
            ],
          },
        });
      expect(thrownBy(other)).toBe(
        "INVALID_ARG cannot bind model 'other':\n" +
          "- data of input 'x' in warmup sample 'long': expected shape [2], got [3]\n" +
          "- data of input 'x' in warmup sample 'text' (INT32): expected an integer in [-2^31, 2^31), got string",
      );
    });
  });
});
