import { BFloat16Bits, batch, type DataType, Float16Bits, sample, Tensor, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import { EchoModel } from "../../../../test/support/echo-model.js";

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
