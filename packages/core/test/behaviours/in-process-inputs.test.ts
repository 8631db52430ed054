import { batch, type DataType, Triton } from "@tritonjs/core";
import { afterEach, describe, expect, it } from "vitest";

let triton: Triton;
afterEach(() => triton.close());

const tensor = <D extends DataType>(dtype: D, shape: readonly number[]) =>
  ({ inputs: [{ name: "x", dtype, shape }], outputs: [{ name: "y", dtype, shape }] }) as const;

/** A worker module that never finishes loading. */
const neverLoads = new URL("data:text/javascript,await new Promise(() => setInterval(() => {}, 1000))");

describe("an in-process inference", () => {
  it("accepts a flat list of byte arrays for BYTES of any rank", async () => {
    triton = new Triton();
    const model = triton.bind({
      modelName: "bytes",
      ...tensor("BYTES", [2, -1]),
      inferFunc: batch(({ x }) => ({ y: x })),
    });
    const x = ["a", "bc", "d", "ef"].map((text) => Buffer.from(text));
    const { y } = await model.inferSample({ x });
    expect([y.shape, y.data.map((bytes) => Buffer.from(bytes).toString())]).toEqual([
      [2, 2],
      ["a", "bc", "d", "ef"],
    ]);
  });

  it.each([
    ["a symbol", Symbol("1"), "symbol"],
    ["a text", "5", "string"],
    ["a list", ["-1"], "object"],
    ["null", null, "null"],
    ["not a number", Number.NaN, "NaN"],
  ])("rejects a time limit that is %s", async (_, timeoutMs, got) => {
    triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      ...tensor("FP32", [1]),
      inferFunc: batch(({ x }) => ({ y: x })),
    });
    await expect(model.inferSample({ x: [1] }, { timeoutMs: timeoutMs as never })).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: `timeoutMs: expected a number of milliseconds, got ${got}`,
    });
  });

  it("rejects parameters that are not plain values before any other step", async () => {
    triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      ...tensor("FP32", [1]),
      inferFunc: batch(({ x }) => ({ y: x })),
    });
    const parameters = { f: () => {} } as never;
    await expect(model.inferSample({ x: [1] }, { parameters })).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: expect.stringContaining("parameter 'f'"),
    });
  });

  it("can be cancelled while the model loads", async () => {
    triton = new Triton({ exitTimeoutSecs: 0 });
    const model = triton.bind({ modelName: "m", ...tensor("FP32", [1]), inferFunc: neverLoads });
    const controller = new AbortController();
    const aborted = model.inferSample({ x: [1] }, { signal: controller.signal });
    const expired = model.inferSample({ x: [1] }, { timeoutMs: 0.001 });
    await expect(expired).rejects.toMatchObject({ code: "UNAVAILABLE", message: "Request timeout expired" });
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ code: "CANCELLED" });
  });

  it("streams the values that its arrays had at the call", async () => {
    triton = new Triton();
    const model = triton.bind({
      modelName: "m",
      ...tensor("FP32", [1]),
      inferFunc: batch(function* ({ x }) {
        yield { y: x };
      }),
    });
    const x = Float32Array.of(1);
    const stream = model.stream({ x });
    x[0] = 2;
    const seen: number[] = [];
    for await (const { y } of stream) seen.push(y.get(0, 0));
    expect(seen).toEqual([1]);
  });
});

describe("bind", () => {
  it("names each specification that is malformed", () => {
    triton = new Triton();
    const inputs = [
      { name: "x", dtype: "FP32" },
      { dtype: "FP32", shape: [1] },
    ] as never;
    expect(() => triton.bind({ modelName: "m", inputs, inferFunc: batch(() => ({})) })).toThrow(
      /inputs\[0\] 'x' has no shape: expected a list of dimensions\n.*inputs\[1\] has no name/,
    );
  });
});

describe("close", () => {
  it("does not wait for a model that never finishes loading", async () => {
    triton = new Triton({ exitTimeoutSecs: 0 });
    const model = triton.bind({ modelName: "m", ...tensor("FP32", [1]), inferFunc: neverLoads });
    await triton.close();
    await expect(model.ready()).rejects.toMatchObject({ code: "INTERNAL" });
  });
});
