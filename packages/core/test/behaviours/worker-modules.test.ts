import { setImmediate as turn } from "node:timers/promises";
import { BFloat16Bits, batch, type DataType, Float16Bits, sample, Tensor, Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import ndarray from "ndarray";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { EchoModel, echo, echoInputs, echoOutputs } from "../../../../test/support/echo-model.js";
import { outcomeOf, outcomesOf, thrownBy } from "../../../../test/support/outcome.js";

describe("worker modules", () => {
  const fixture = (name: string) => new URL(`./fixtures/${name}.mjs`, import.meta.url);
  const specs = { modelName: "m", inputs: echoInputs, outputs: echoOutputs } as const;
  let triton: Triton;

  beforeEach(() => {
    triton = new Triton();
  });

  afterEach(() => triton.close());

  describe("a module in a worker", () => {
    it("may export a callback made with batch()", async () => {
      const handle = triton.bind({ ...specs, inferFunc: fixture("batch-double") });
      await handle.ready();
      expect(await Promise.all([1, 2, 3].map((value) => echo(handle, value)))).toEqual([2, 4, 6]);
      expect(handle.statistics()).toMatchObject({ inferenceCount: 3, executionCount: 1 });
    });

    it("may export a callback made with sample()", async () => {
      const handle = triton.bind({
        modelName: "sum",
        inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
        outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
        inferFunc: fixture("sample-sum"),
        config: { batching: false },
      });
      expect([...(await handle.infer({ x: [1, 2, 3] })).y.data]).toEqual([6]);
    });

    it("may export a plain callback, which gets the same request and instance data as on the main thread", async () => {
      const handle = triton.bind({
        modelName: "report",
        modelVersion: 2,
        inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
        outputs: [{ name: "report", dtype: "BYTES", shape: [1] }],
        inferFunc: fixture("plain-report"),
      });
      await handle.ready();
      const parameters = { big: 2n ** 60n, flag: true };
      const [one, two] = await Promise.all([
        handle.infer({ x: [[1]] }, { id: "a", parameters: { flag: true } }),
        handle.infer({ x: [[2], [3]] }, { id: "b" }),
      ]);
      const read = (bytes: Uint8Array | undefined) => JSON.parse(Buffer.from(bytes!).toString());
      const same = {
        isMainThread: false,
        together: ["a", "b"],
        modelName: "report",
        modelVersion: 2,
        instanceName: "report_0",
        instanceIndex: 0,
        device: { kind: "KIND_CPU", id: 0, executionProviders: ["cpu"], environment: {}, torch: "cpu" },
        maxBatchSize: 4,
      };
      expect(read(one.report.data[0])).toEqual({
        ...same,
        id: "a",
        x: [1],
        parameters: { flag: true },
        batchSize: 1,
      });
      expect(read(two.report.data[1])).toEqual({ ...same, id: "b", x: [2, 3], parameters: {}, batchSize: 2 });
      const failing = handle.infer({ x: [[1]] }, { id: "c", parameters: { ...parameters, fail: true } });
      expect(await outcomeOf(failing)).toBe("INTERNAL model 'report': failed c");
    });

    it("runs in as many workers as there are instances", async () => {
      const handle = triton.bind({
        modelName: "report",
        inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
        outputs: [{ name: "report", dtype: "BYTES", shape: [1] }],
        inferFunc: fixture("plain-report"),
        config: { maxBatchSize: 1, instanceGroup: { count: 2 } },
      });
      await handle.ready();
      const answers = await Promise.all([1, 2].map((value) => handle.inferSample({ x: [value] })));
      const names = answers.map(
        ({ report }) => JSON.parse(Buffer.from(report.data[0]!).toString()).instanceName,
      );
      expect(names).toEqual(["report_0_0", "report_0_1"]);
    });

    it("keeps the memory of its results", async () => {
      const handle = triton.bind({
        modelName: "constant",
        inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
        outputs: [
          { name: "numbers", dtype: "UINT8", shape: [4] },
          { name: "words", dtype: "BYTES", shape: [1] },
        ],
        inferFunc: fixture("constant-buffers"),
        config: { maxBatchSize: 1 },
      });
      for (let i = 0; i < 3; i++) {
        const { numbers, words } = await handle.inferSample({ x: [i] });
        expect([...numbers.data]).toEqual([1, 2, 3, 4]);
        expect(Buffer.from(words.data[0]!).toString()).toBe("same");
      }
    });
  });

  describe("a cancelled request to a worker", () => {
    it("ends at once, and the module is notified when all requests of its batch are cancelled", async () => {
      const handle = triton.bind({ ...specs, inferFunc: fixture("waits-for-cancel") });
      await handle.ready();
      const controllers = [new AbortController(), new AbortController()];
      const sent = controllers.map(({ signal }, i) => outcomeOf(echo(handle, i + 1, { signal })));
      await turn();
      expect(handle.instances()[0]!.busy).toBe(true);
      controllers[0]!.abort();
      expect(await sent[0]).toBe("CANCELLED the request was cancelled");
      expect(handle.instances()[0]!.busy).toBe(true);
      controllers[1]!.abort();
      expect(await sent[1]).toBe("CANCELLED the request was cancelled");
      expect(await echo(handle, 0)).toBe(102);
    });
  });

  describe("closing a model with workers", () => {
    it("ends a worker whose module keeps a timer", async () => {
      const handle = triton.bind({ ...specs, inferFunc: fixture("keeps-a-timer") });
      expect(await echo(handle, 1)).toBe(1);
      await triton.close();
      expect(await outcomeOf(echo(handle, 1))).toMatch(/^UNAVAILABLE/);
    });

    it("ends a worker that never finishes, after the exit timeout", async () => {
      triton = new Triton({ exitTimeoutSecs: 0 });
      const handle = triton.bind({ ...specs, inferFunc: fixture("waits-for-cancel") });
      await handle.ready();
      const sent = outcomesOf([1, 2].map((value) => echo(handle, value)));
      await turn();
      await triton.close();
      expect(await sent).toEqual(
        Array(2).fill("UNAVAILABLE model 'm' was stopped before the request finished"),
      );
    });
  });

  describe("an invalid worker module", () => {
    const ready = (name: string, config = {}) =>
      outcomeOf(triton.bind({ ...specs, inferFunc: fixture(name), config }).ready());

    it("is rejected by bind when it is missing", () => {
      expect(thrownBy(() => triton.bind({ ...specs, inferFunc: fixture("nowhere") }))).toMatch(
        /- inferFunc: cannot find the module file:.*nowhere\.mjs$/,
      );
    });

    it("is reported by ready, infer and the repository index when it throws", async () => {
      const handle = triton.bind({ ...specs, inferFunc: fixture("throws-while-loading") });
      const module = fixture("throws-while-loading");
      const reason = `model 'm': cannot import the module ${module}: the weights are missing (at ${module}:1:7)`;
      expect(await outcomeOf(handle.ready())).toBe(`INTERNAL ${reason}`);
      expect(await outcomeOf(echo(handle, 1))).toBe(
        `UNAVAILABLE model 'm' version 1 is not ready: ${reason}`,
      );
      expect(await serviceOf(triton).repositoryIndex(false)).toEqual([
        { name: "m", version: "1", state: "UNAVAILABLE", reason },
      ]);
      expect(serviceOf(triton).isModelReady("m", "")).toBe(false);
    });

    it("is reported with the name of a missing import", async () => {
      expect(await ready("imports-what-is-missing")).toContain("there-is-no-such-module.mjs");
    });

    it("is reported when it exports no function, even when it keeps a timer", async () => {
      expect(await ready("exports-no-function")).toMatch(
        /^INVALID_ARG model 'm': module .*exports-no-function.mjs: expected a callback as default export, or a class, got object$/,
      );
    });

    it("is rejected with batching when it takes one request at a time", async () => {
      expect(await ready("sample-sum")).toBe(
        "INVALID_ARG model 'm': config.batching is true, but a callback made with sample() takes one request at a time: leave config.batching out",
      );
    });
  });
});

const pair = {
  inputs: [{ name: "x", dtype: "INT32", shape: [2] }],
  outputs: [{ name: "y", dtype: "INT32", shape: [2] }],
} as const;

const words = {
  inputs: [{ name: "x", dtype: "BYTES", shape: [1] }],
  outputs: [{ name: "y", dtype: "BYTES", shape: [1] }],
} as const;

const text = (element: Uint8Array | undefined) => Buffer.from(element!).toString();

describe("a caller that changes its arrays after infer()", () => {
  const forms: Record<string, (data: Int32Array<ArrayBuffer>) => unknown> = {
    "typed array": (data) => data,
    ndarray: (data) => ndarray(data, [1, 2]),
    "strided ndarray": (data) => ndarray(data, [1, 2], [2, 1]),
  };
  for (const [name, form] of Object.entries(forms)) {
    it(`does not change the ${name} that it sent, even while the model loads`, async () => {
      for (const loaded of [true, false]) {
        await using triton = new Triton();
        const handle = triton.bind({ modelName: "m", ...pair, inferFunc: batch(({ x }) => ({ y: x })) });
        if (loaded) await handle.ready();
        const data = Int32Array.of(1, 2);
        const direct = handle.infer({ x: form(data) as Int32Array<ArrayBuffer> });
        const byName = triton.infer("m", { x: form(data) });
        data.fill(9);
        expect([...(await direct).y.data]).toEqual([1, 2]);
        expect([...((await byName).y!.data as Int32Array)]).toEqual([1, 2]);
      }
    });
  }

  it.each<[string, DataType, (bits: Uint16Array) => unknown]>([
    ["bits of FP16", "FP16", (bits) => new Float16Bits(bits.buffer)],
    ["bits of BF16", "BF16", (bits) => new BFloat16Bits(bits.buffer)],
    ["rows of bits", "FP16", (bits) => [new Float16Bits(bits.buffer)]],
    ["an ndarray of bits", "FP16", (bits) => ndarray(new Float16Bits(bits.buffer) as never, [1, 2])],
    ["a tensor", "FP16", (bits) => Tensor.fromElements("FP16", [1, 2], bits)],
  ])("does not change %s that it sent while the model loads", async (_, dtype, form) => {
    await using triton = new Triton();
    triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype, shape: [2] }],
      outputs: [{ name: "y", dtype, shape: [2] }],
      inferFunc: batch(({ x }) => ({ y: x })),
    });
    const bits = Uint16Array.of(1, 2);
    const answer = triton.infer("m", { x: form(bits) });
    bits.fill(9);
    const data = (await answer).y!.data as unknown as Float16Bits;
    expect([...new Uint16Array(data.buffer, data.byteOffset, 2)]).toEqual([1, 2]);
  });

  it("does not change the bytes that it sent, including pooled Buffers", async () => {
    await using triton = new Triton();
    const handle = triton.bind({ modelName: "m", ...words, inferFunc: batch(({ x }) => ({ y: x })) });
    await handle.ready();
    for (const bytes of [Buffer.from("hello"), new TextEncoder().encode("hello")]) {
      const answer = handle.inferSample({ x: [bytes] });
      bytes.fill(0x78);
      expect(text((await answer).y.data[0])).toBe("hello");
    }
    const uint8 = triton.bind({
      modelName: "uint8",
      inputs: [{ name: "x", dtype: "UINT8", shape: [2] }],
      outputs: [{ name: "y", dtype: "UINT8", shape: [2] }],
      inferFunc: batch(({ x }) => ({ y: x })),
    });
    const buffer = Buffer.from([1, 2]);
    const answer = uint8.inferSample({ x: buffer });
    buffer.fill(9);
    expect([...(await answer).y.data]).toEqual([1, 2]);
  });
});

describe("a callback that changes its inputs", () => {
  it("does not change the caller's arrays", async () => {
    await using triton = new Triton();
    const handle = triton.bind({
      modelName: "m",
      ...pair,
      inferFunc: batch(({ x }) => {
        x.data.fill(-1);
        return { y: x };
      }),
    });
    const data = Int32Array.of(1, 2);
    await handle.infer({ x: data });
    expect([...data]).toEqual([1, 2]);
  });

  it("does not change other requests in its batch or in other models", async () => {
    await using triton = new Triton();
    const handle = triton.bind({
      modelName: "m",
      ...pair,
      inferFunc: async (requests) => {
        const results = requests.map(({ inputs }) => ({ y: Int32Array.from(inputs.x.data) }));
        requests[0]!.inputs.x.data.fill(-1);
        const after = requests.map(({ inputs }) => [...inputs.x.data]);
        expect(after.slice(1)).toEqual(results.slice(1).map(({ y }) => [...y]));
        return results;
      },
    });
    await handle.ready();
    const shared = Int32Array.of(3, 4);
    const answers = await Promise.all([1, 2, 3].map(() => handle.infer({ x: shared })));
    expect(answers.map(({ y }) => [...y.data])).toEqual([
      [3, 4],
      [3, 4],
      [3, 4],
    ]);
  });

  it("does not change the bytes of other requests", async () => {
    await using triton = new Triton();
    const handle = triton.bind({
      modelName: "m",
      ...words,
      inferFunc: async (requests) => {
        requests[0]!.inputs.x.data[0]!.fill(0x78);
        return requests.map(({ inputs }) => ({ y: inputs.x }));
      },
    });
    await handle.ready();
    const shared = Buffer.from("same");
    const answers = await Promise.all([1, 2].map(() => handle.inferSample({ x: [shared] })));
    expect([answers.map(({ y }) => text(y.data[0])), shared.toString()]).toEqual([["xxxx", "same"], "same"]);
  });
});

describe("a caller that changes its result", () => {
  it("does not change a constant that the callback returns each time", async () => {
    await using triton = new Triton();
    const constant = Int32Array.of(5, 6);
    const handle = triton.bind({ modelName: "m", ...pair, inferFunc: batch(() => ({ y: constant })) });
    const first = await handle.inferSample({ x: [0, 0] });
    first.y.data.fill(0);
    const second = await handle.inferSample({ x: [0, 0] });
    expect([[...second.y.data], [...constant]]).toEqual([
      [5, 6],
      [5, 6],
    ]);
  });

  it("does not change constant bytes", async () => {
    await using triton = new Triton();
    const constant = [Buffer.from("fixed")];
    const handle = triton.bind({
      modelName: "m",
      inputs: words.inputs,
      outputs: words.outputs,
      config: { batching: false },
      inferFunc: sample(() => ({ y: constant })),
    });
    (await handle.infer({ x: ["a"] })).y.data[0]!.fill(0);
    expect(text((await handle.infer({ x: ["a"] })).y.data[0])).toBe("fixed");
  });

  it("does not change other results of the batch, and does not see their bytes", async () => {
    const clock = new VirtualClock();
    const model = new EchoModel();
    const handle = await model.bind(new Triton({ clock }));
    const sent = [1, 2, 3].map((value) => handle.inferSample({ x: [value] }));
    await clock.settle();
    const answers = await Promise.all(sent);
    expect(model.batches).toEqual([[1, 2, 3]]);
    expect(answers.map(({ y }) => y.data.buffer.byteLength)).toEqual([4, 4, 4]);
    answers[0]!.y.data.fill(9);
    expect(answers.map(({ y }) => y.data[0])).toEqual([9, 2, 3]);
  });
});
