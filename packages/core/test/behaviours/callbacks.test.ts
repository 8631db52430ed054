import { AsyncLocalStorage } from "node:async_hooks";
import { batch, done, type ModelOptions, sample, stepwise, Triton } from "@tritonjs/core";
import ndarray from "ndarray";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { importCompiled } from "../../../../test/support/compile-fixture.js";
import { echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { thrownBy } from "../../../../test/support/outcome.js";
import { listedGpus } from "../support/listed-gpus.js";
// @ts-expect-error: a module of JavaScript, which workers import as it is.
import { styles } from "./fixtures/tells-requests.mjs";

describe("callbacks", () => {
  let triton = new Triton({ extensions: [listedGpus(0, 1)] });

  afterEach(async () => {
    await triton.close();
    triton = new Triton({ extensions: [listedGpus(0, 1)] });
  });

  const echoSpecs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;

  describe("a callback made with batch()", () => {
    it("gets the rows of all requests in one ndarray", async () => {
      const shapes: number[][] = [];
      const handle = triton.bind({
        ...echoSpecs,
        inferFunc: batch(({ x }) => {
          shapes.push(x.shape);
          return {
            y: ndarray(
              x.data.map((value) => value * 2),
              x.shape,
            ),
          };
        }),
      });
      await handle.ready();
      expect(await Promise.all([echo(handle, 1), echo(handle, 2), echo(handle, 3)])).toEqual([2, 4, 6]);
      expect(shapes).toEqual([[3, 1]]);
    });

    it("may be asynchronous", async () => {
      const inferFunc = batch<typeof echoInputs, typeof echoOutputs>(async ({ x }) => {
        await new Promise<void>((resolve) => setImmediate(resolve));
        return { y: x };
      });
      expect(await echo(triton.bind({ ...echoSpecs, inferFunc }), 7)).toBe(7);
    });

    it("may return a strided ndarray", async () => {
      const handle = triton.bind({
        modelName: "transpose",
        inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
        outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
        inferFunc: batch(({ x }) => ({ y: x.step(1, -1) })),
      });
      const { y } = await handle.inferBatch({
        x: [
          [1, 2],
          [3, 4],
        ],
      });
      expect([...y.data]).toEqual([2, 1, 4, 3]);
    });
  });

  describe("a callback made with sample()", () => {
    it("gets the tensors of one request, without a batch axis", async () => {
      const handle = triton.bind({
        modelName: "sum",
        inputs: [{ name: "x", dtype: "FP64", shape: [-1, 2] }],
        outputs: [{ name: "sum", dtype: "FP64", shape: [1] }],
        inferFunc: sample(({ x }) => ({ sum: [x.data.reduce((sum, value) => sum + value, 0)] })),
      });
      expect(handle.config().maxBatchSize).toBe(0);
      const { sum } = await handle.infer({
        x: [
          [1, 2],
          [3, 4],
        ],
      });
      expect([sum.shape, sum.data[0]]).toEqual([[1], 10]);
    });

    it("is rejected for a model with batching", () => {
      const inferFunc = sample<typeof echoInputs, typeof echoOutputs>(({ x }) => ({ y: x }));
      for (const options of [{ config: { maxBatchSize: 4 } }, { modelConfig: { maxBatchSize: 4 } }]) {
        expect(thrownBy(() => triton.bind({ ...echoSpecs, inferFunc, ...options }))).toContain(
          "config.batching is true, but a callback made with sample() takes one request at a time: leave config.batching out",
        );
      }
    });
  });

  describe("a plain callback", () => {
    it("gets the list of requests and returns one result for each", async () => {
      const sizes: number[] = [];
      const handle = triton.bind({
        ...echoSpecs,
        inferFunc: (requests) => {
          sizes.push(requests.length);
          return requests.map(({ inputs, batchSize }) => ({
            y: inputs.x.data.map((value) => value + batchSize * 100),
          }));
        },
      });
      await handle.ready();
      const [one, two] = await Promise.all([
        handle.inferBatch({ x: [[1]] }),
        handle.inferBatch({ x: [[2], [3]] }),
      ]);
      expect([sizes, [...one.y.data], [...two.y.data]]).toEqual([[2], [101], [202, 203]]);
    });

    it("gets id, parameters, priority, size and requested outputs of each request", async () => {
      const seen: unknown[] = [];
      const handle = triton.bind({
        ...echoSpecs,
        inferFunc: async (requests, context) => {
          for (const { id, parameters, priority, batchSize, requestedOutputs } of requests) {
            seen.push({ id, parameters, priority, batchSize, requestedOutputs });
          }
          expect(context.requests.map(({ id }) => id)).toEqual(requests.map(({ id }) => id));
          return requests.map(({ inputs }) => ({ y: inputs.x }));
        },
      });
      await handle.ready();
      const parameters = { user: "ann", retries: 3, strict: true };
      await Promise.all([echo(handle, 1, { id: "r1", parameters, priority: 2 }), echo(handle, 2)]);
      expect(seen).toEqual([
        { id: "r1", parameters, priority: 2, batchSize: 1, requestedOutputs: [] },
        { id: "", parameters: {}, priority: 0, batchSize: 1, requestedOutputs: [] },
      ]);
    });
  });

  describe("the callback context", () => {
    it("names model, version, configuration, instance and device", async () => {
      const contexts: unknown[] = [];
      const handle = triton.bind({
        ...echoSpecs,
        modelVersion: 3,
        config: { parameters: { k: "v" }, instanceGroup: { kind: "KIND_GPU", gpus: [1] } },
        inferFunc: batch(
          ({ x }, { modelName, modelVersion, modelConfig, instanceName, instanceIndex, device }) => {
            contexts.push({
              modelName,
              modelVersion,
              k: modelConfig.parameters.k,
              instanceName,
              instanceIndex,
              device,
            });
            return { y: x };
          },
        ),
      });
      await echo(handle, 1);
      expect(contexts).toEqual([
        {
          modelName: "m",
          modelVersion: 3,
          k: { stringValue: "v" },
          instanceName: "m_0_0",
          instanceIndex: 0,
          device: {
            kind: "KIND_GPU",
            id: 1,
            executionProviders: [{ name: "cuda", deviceId: 1 }, "cpu"],
            environment: { CUDA_VISIBLE_DEVICES: "1" },
            torch: "cuda:1",
          },
        },
      ]);
    });
  });

  describe("decorated methods", () => {
    it("are callbacks bound to their object", async () => {
      interface Fixture {
        readonly DecoratedModel: new (
          factor: number,
        ) => Record<"rows" | "one", (inputs: { x: { data: Int32Array } }) => { y: Int32Array }>;
      }
      const fixture = new URL("../../../../test/support/decorated/decorated-model.ts", import.meta.url);
      const { DecoratedModel } = await importCompiled<Fixture>(fixture);
      const triple = new DecoratedModel(3);
      const double = new DecoratedModel(2);
      const rows = triton.bind({ ...echoSpecs, inferFunc: triple.rows });
      const other = triton.bind({ ...echoSpecs, modelVersion: 2, inferFunc: double.rows });
      const one = triton.bind({ ...echoSpecs, modelName: "one", inferFunc: triple.one });
      expect([await echo(rows, 5), await echo(other, 5), await echo(one, 5)]).toEqual([15, 10, 8]);
      expect([rows.config().maxBatchSize, one.config().maxBatchSize]).toEqual([4, 0]);
    });
  });
});

describe("callback request info", () => {
  const STYLES = [
    "plain",
    "batch",
    "sample",
    "groupByKeys around a plain callback",
    "fillOptionals around a plain callback",
  ];

  /** What is known of a request, as all callbacks are told of it. */
  const INFO = [
    ...["id", "parameters", "priority", "queueTimeoutMicroseconds", "requestedOutputs", "batchSize", "ready"],
    ...["correlationId", "sequence", "sequenceStart", "sequenceEnd"],
  ];

  const options = {
    id: "a",
    priority: 2,
    parameters: { n: 7, flag: true },
    queueTimeoutMicroseconds: 60_000_000,
  };

  const sequence = { sequence: { id: "s", start: true } } as const;
  let triton: Triton;

  beforeEach(() => {
    triton = new Triton();
  });

  afterEach(() => triton.close());

  const fixture = (style: string) =>
    new URL(`./fixtures/tells-requests.mjs?${encodeURIComponent(style)}`, import.meta.url);

  /** What a callback of a style tells of one request: on this thread, or in a worker. */
  async function told(style: string, where: "here" | "in a worker", config: ModelOptions = {}) {
    const inferFunc = where === "here" ? styles[style] : fixture(style);
    const handle = triton.bind({
      modelName: where === "here" ? "here" : "worker",
      inputs: [
        { name: "x", dtype: "INT32", shape: [1] },
        { name: "z", dtype: "INT32", shape: [1], optional: true },
      ],
      outputs: [{ name: "told", dtype: "BYTES", shape: [1] }],
      inferFunc,
      config: { ...(style === "sample" ? { batching: false } : {}), ...config },
    });
    await handle.ready();
    const x = style === "sample" ? [1] : [[1]];
    const given = config.sequence === undefined ? options : { ...options, ...sequence };
    const answer = await handle.infer({ x } as never, given);
    return JSON.parse(Buffer.from((answer as { told: { data: Uint8Array[] } }).told.data[0]!).toString());
  }

  describe("what a callback is told of a request", () => {
    it.each(STYLES)("is the same on the main thread and in a worker: %s", async (style) => {
      const here = await told(style, "here");
      expect(await told(style, "in a worker")).toEqual(here);
      const { request, inContext } = here;
      expect(inContext[0].data).toMatchObject({ id: "a", priority: 2, parameters: options.parameters });
      // Nothing that is told leads to where a request could be answered or given up.
      const inInfo = [...INFO, "runInContext"].sort();
      expect(inContext.map(({ names }: { names: string[] }) => names)).toEqual([inInfo]);
      if (request === undefined) return;
      expect(request.names).toEqual([...INFO, "constructor", "runInContext", "inputs", "signal"].sort());
      expect(request.data).toEqual(inContext[0].data);
    });

    it("is the same on the main thread and in a worker for a request of a sequence", async () => {
      const config = { sequence: {} } satisfies ModelOptions;
      const here = await told("plain", "here", config);
      expect(await told("plain", "in a worker", config)).toEqual(here);
      expect(here.request.data).toMatchObject({ correlationId: "s", sequence: { correlationId: "s" } });
    });

    it("is the same for those that say how requests are grouped and what they cost", async () => {
      const seen: unknown[] = [];
      const note = (request: { readonly inputs: object }) => {
        const { inputs: _, ...info } = request;
        seen.push(Object.keys(info).sort());
        return 1;
      };
      const handle = triton.bind({
        modelName: "m",
        inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
        outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
        inferFunc: batch(({ x }) => ({ y: x.data })),
        config: { batcher: { batchBy: note, cost: note, maxBatchCost: 10 } },
      });
      await handle.infer({ x: [[1]] }, options);
      expect(seen).toEqual([[...INFO].sort(), [...INFO].sort()]);
    });
  });
});

describe("asynchronous context", () => {
  let triton = new Triton();

  afterEach(async () => {
    await triton.close();
    triton = new Triton();
  });

  const tenant = new AsyncLocalStorage<string>();
  const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;
  const unbatched = { ...specs, config: { batching: false } } as const;

  describe("the asynchronous context of the caller", () => {
    it("is that of each request inside runInContext, and of no caller outside", async () => {
      const seen: unknown[] = [];
      const handle = triton.bind({
        ...specs,
        inferFunc: batch(async ({ x }, { requests }) => {
          seen.push(tenant.getStore());
          await Promise.resolve();
          for (const request of requests) seen.push(request.runInContext(() => tenant.getStore()));
          return { y: x };
        }),
      });
      await handle.ready();
      await Promise.all(["a", "b", "c"].map((name, i) => tenant.run(name, () => echo(handle, i))));
      expect(seen).toEqual([undefined, "a", "b", "c"]);
    });

    it("is set for each request of a plain callback, and lasts through its awaits", async () => {
      const handle = triton.bind({
        ...specs,
        inferFunc: (requests) =>
          Promise.all(
            requests.map((request) =>
              request.runInContext(async () => {
                await Promise.resolve();
                return { y: [[Number(tenant.getStore())]] };
              }),
            ),
          ),
      });
      await handle.ready();
      const sent = ["5", "7"].map((name) => tenant.run(name, () => echo(handle, 0)));
      expect(await Promise.all(sent)).toEqual([5, 7]);
    });

    it("is set for a sample callback, including each step of a generator", async () => {
      const one = triton.bind({
        ...unbatched,
        inferFunc: sample(async () => ({ y: [Number(tenant.getStore())] })),
      });
      const many = triton.bind({
        ...unbatched,
        modelName: "many",
        inferFunc: sample(async function* () {
          yield { y: [Number(tenant.getStore())] };
          await Promise.resolve();
          yield { y: [Number(tenant.getStore()) + 1] };
        }),
      });
      await tenant.run("3", async () => expect((await one.infer({ x: [0] })).y.data[0]).toBe(3));
      const values: number[] = [];
      const responses = tenant.run("4", () => many.stream({ x: [0] }));
      await tenant.run("4", async () => {
        for await (const { y } of responses) values.push(y.data[0]!);
      });
      expect(values).toEqual([4, 5]);
    });

    it("is set when a stepwise callback starts a request, but not in its steps", async () => {
      const seen: unknown[] = [];
      const handle = triton.bind({
        ...specs,
        inferFunc: stepwise<typeof echoInputs, typeof echoOutputs, { name: unknown }>({
          start: async () => {
            await Promise.resolve();
            return { name: tenant.getStore() };
          },
          step: (active) => {
            seen.push(tenant.getStore());
            return active.map(({ name }) => done({ y: [Number(name)] }));
          },
        }),
      });
      await handle.ready();
      const answers = ["5", "7"].map((name) => tenant.run(name, () => handle.stream({ x: [[0]] }).next()));
      expect((await Promise.all(answers)).map(({ value }) => value?.y.data[0])).toEqual([5, 7]);
      expect(seen.length).toBeGreaterThan(0);
      expect(seen.every((store) => store === undefined)).toBe(true);
    });

    it("follows a request from model to model and through the steps of an ensemble", async () => {
      triton.bind({
        ...unbatched,
        modelName: "who",
        inferFunc: sample(() => ({ y: [Number(tenant.getStore())] })),
      });
      const calls = triton.bind({
        ...unbatched,
        modelName: "calls",
        inferFunc: sample(({ x }, context) => context.infer<{ y: Int32Array }>("who", { x })),
      });
      const ensemble = triton.bindEnsemble({
        ...specs,
        modelName: "ensemble",
        steps: [
          { modelName: "who", inputMap: { x: "x" }, outputMap: { y: "middle" } },
          { modelName: "calls", inputMap: { x: "middle" }, outputMap: { y: "y" } },
        ],
        config: { batching: false },
      });
      await tenant.run("8", async () => {
        expect((await calls.infer({ x: [0] })).y.data[0]).toBe(8);
        expect((await ensemble.infer({ x: [0] })).y.data[0]).toBe(8);
      });
    });

    it("is not set in a worker, where runInContext is a plain call", async () => {
      const handle = triton.bind({
        ...specs,
        inferFunc: new URL("./fixtures/runs-in-context.mjs", import.meta.url),
      });
      expect(await tenant.run("x", () => echo(handle, 2))).toBe(4);
    });
  });
});

describe("instance device", () => {
  describe("the device of a callback", () => {
    it("reaches callbacks on this thread and modules in workers and processes", async () => {
      await using triton = new Triton({ extensions: [listedGpus(0, 1)] });
      const inputs = [{ name: "x", dtype: "FP32", shape: [1] }] as const;
      const outputs = [{ name: "torch", dtype: "BYTES", shape: [1] }] as const;
      const inline = triton.bind({
        modelName: "inline",
        inputs,
        outputs,
        inferFunc: (requests, { device }) => requests.map(() => ({ torch: [device.torch] })),
        config: { batching: false, instanceGroup: { kind: "KIND_GPU", gpus: [1] } },
      });
      const text = ({ torch }: { readonly torch: { readonly data: ArrayLike<unknown> } }) =>
        Array.from(torch.data, (one) => Buffer.from(one as Uint8Array).toString());
      expect(text(await inline.inferSample({ x: [1] }))).toEqual(["cuda:1"]);
      for (const isolation of ["worker", "process"] as const) {
        const module = triton.bind({
          modelName: isolation,
          inputs,
          outputs,
          inferFunc: new URL("./fixtures/says-device.mjs", import.meta.url),
          config: { batching: false, instanceGroup: { kind: "KIND_GPU", gpus: [1], isolation } },
        });
        expect(text(await module.inferSample({ x: [1] }))).toEqual(["cuda:1 cuda 1"]);
      }
    });
  });
});
