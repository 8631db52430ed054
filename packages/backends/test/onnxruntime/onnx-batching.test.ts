import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type DataType, Triton } from "@tritonjs/core";
import { DATA_TYPES, Float16Bits, tensorFromValue, toNdArray } from "@tritonjs/protocol";
import type { Tensor as OrtTensor } from "onnxruntime-node";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { allTypesOnnx, identityOnnx, matrixOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf, outcomesOf, thrownBy } from "../../../../test/support/outcome.js";
import { fromResults, toFeeds } from "../../src/onnxruntime/ort-tensors.js";

describe("batches of an ONNX model", () => {
  const specs = {
    inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
    outputs: [
      { name: "product", dtype: "FP32", shape: [3] },
      { name: "twice", dtype: "FP32", shape: [4] },
    ],
  } as const;

  /** Rows of whole numbers: their products are exact, whatever the order of additions. */
  const rows = Array.from({ length: 64 }, (_, i) => [i, 64 - i, (i * 7) % 13, -i]);

  let triton: Triton;

  beforeEach(() => {
    triton = new Triton();
  });

  afterEach(() => triton.close());

  describe("64 single requests to an ONNX model at once", () => {
    for (const count of [1, 2]) {
      it(`run in merged batches on ${count} instance(s), and each answer equals that of the request alone`, async () => {
        const handle = triton.bind({
          modelName: "matrix",
          ...specs,
          inferFunc: onnxruntime({ model: matrixOnnx() }),
          config: { maxBatchSize: 16, instanceGroup: { count } },
        });
        await handle.ready();
        expect(handle.instances()).toHaveLength(count);
        const together = await Promise.all(rows.map((x) => handle.inferSample({ x })));
        const { inferenceCount, executionCount } = handle.statistics();
        expect(inferenceCount).toBe(64);
        expect(executionCount).toBeLessThanOrEqual(8);
        for (const [i, x] of rows.entries()) {
          const alone = await handle.inferSample({ x });
          expect([...together[i]!.product.data]).toEqual([...alone.product.data]);
          expect([...together[i]!.twice.data]).toEqual(x.map((value) => 2 * value));
        }
      });
    }

    it("share batches with requests of several rows", async () => {
      const handle = triton.bind({
        modelName: "matrix",
        ...specs,
        inferFunc: onnxruntime({ model: matrixOnnx() }),
        config: { maxBatchSize: 8 },
      });
      await handle.ready();
      const sizes = [3, 1, 2, 5, 1];
      const answers = await Promise.all(sizes.map((size) => handle.inferBatch({ x: rows.slice(0, size) })));
      expect(answers.map(({ twice }) => twice.shape)).toEqual(sizes.map((size) => [size, 4]));
      for (const { twice, product } of answers) {
        expect([...twice.data]).toEqual(
          rows
            .slice(0, twice.shape[0])
            .flat()
            .map((value) => 2 * value),
        );
        expect([...product.data.subarray(0, 3)]).toEqual([...answers[0]!.product.data.subarray(0, 3)]);
      }
    });
  });

  describe("a bound model file", () => {
    it("provides inputs, outputs and batching when bind does not name them", async () => {
      const handle = triton.bind({ modelName: "matrix", inferFunc: onnxruntime({ model: matrixOnnx() }) });
      expect(handle.config()).toMatchObject({
        maxBatchSize: 4,
        backend: "onnxruntime",
        platform: "onnxruntime_onnx",
        input: [{ name: "x", dataType: "TYPE_FP32", dims: [4] }],
        output: [
          { name: "product", dims: [3] },
          { name: "twice", dims: [4] },
        ],
      });
      await handle.ready();
      expect(handle.instances()[0]!.details).toEqual({ executionProvider: "cpu" });
    });

    it("may have more outputs than are served", async () => {
      const handle = triton.bind({
        modelName: "matrix",
        inputs: specs.inputs,
        outputs: [specs.outputs[1]],
        inferFunc: onnxruntime({ model: matrixOnnx() }),
      });
      const result = await handle.inferSample({ x: [1, 2, 3, 4] });
      expect(Object.keys(result)).toEqual(["twice"]);
      expect([...result.twice.data]).toEqual([2, 4, 6, 8]);
    });
  });
});

describe("data types of an ONNX model", () => {
  const triton = new Triton();

  afterAll(() => triton.close());

  /** Two rows of two elements each, at the limits of the data type. */
  const values: Record<Exclude<DataType, "BF16">, readonly unknown[]> = {
    BOOL: [true, false, false, true],
    UINT8: [0, 1, 128, 255],
    UINT16: [0, 1, 32768, 65535],
    UINT32: [0, 1, 2 ** 31, 2 ** 32 - 1],
    UINT64: [0n, 1n, 2n ** 63n, 2n ** 64n - 1n],
    INT8: [0, -1, -128, 127],
    INT16: [0, -1, -32768, 32767],
    INT32: [0, -1, -(2 ** 31), 2 ** 31 - 1],
    INT64: [0n, -1n, -(2n ** 63n), 2n ** 63n - 1n],
    FP16: [0, -1.5, 65504, Number.POSITIVE_INFINITY],
    FP32: [0, -1.5, 3.4e38, Number.NEGATIVE_INFINITY],
    FP64: [0, -1.5, 1e300, Number.NaN],
    BYTES: ["", "plain", "ä€𝄞", "two\nlines"],
  };

  describe("an ONNX model", () => {
    it("passes all data types through bit for bit", async () => {
      const handle = triton.bind({
        modelName: "all",
        inferFunc: onnxruntime({ model: allTypesOnnx(["batch", 2]) }),
        config: { maxBatchSize: 8 },
      });
      const rows = Object.entries(values).map(([name, x]) => [`x_${name}`, [x.slice(0, 2), x.slice(2)]]);
      const inputs = Object.fromEntries(rows);
      const outputs = await triton.infer(handle.name, inputs);
      for (const datatype of Object.keys(values) as DataType[]) {
        const y = outputs[`y_${datatype}`]!;
        expect(y.shape).toEqual([2, 2]);
        expect(y.data).toEqual(await throughCallback(datatype, inputs[`x_${datatype}`]));
      }
      expect(handle.metadata()).toMatchObject({
        platform: "onnxruntime_onnx",
        inputs: Object.keys(values).map((datatype) => ({ name: `x_${datatype}`, datatype, shape: [-1, 2] })),
      });
    });

    it("gets and returns the bits of FP16 without a copy", async () => {
      const given = new Float16Bits([0x3c00, 0xfe01]);
      const input = tensorFromValue(given, { what: "x", datatype: "FP16", shape: [2] });
      const feeds = toFeeds(new Map([["x", input]]), new Set());
      expect((feeds.x!.data as Uint16Array).buffer).toBe(given.buffer);
      // onnxruntime-node returns the array class of the run time, which newer versions of Node have for FP16.
      for (const data of [Uint16Array.of(1, 2), toNdArray(input).data as Uint16Array]) {
        const result = { type: "float16", dims: [2], data } as unknown as OrtTensor;
        const output = fromResults({ y: result }).get("y")!;
        expect((toNdArray(output).data as Float16Bits).buffer).toBe(data.buffer);
      }
      const halves = triton.bind({
        modelName: "halves",
        inferFunc: onnxruntime({ model: identityOnnx("FLOAT16", ["batch", 2]) }),
        config: { maxBatchSize: 8 },
      });
      await halves.ready();
      const { y } = await triton.infer("halves", { x: [given, given] });
      expect(new Uint16Array((y!.data as Float16Bits).buffer)).toEqual(
        Uint16Array.of(0x3c00, 0xfe01, 0x3c00, 0xfe01),
      );
    });

    it("is tested with every data type but BF16", () => {
      expect([...Object.keys(values), "BF16"].sort()).toEqual([...DATA_TYPES].sort());
    });

    it("is rejected by bind when it uses bfloat16", () => {
      const inferFunc = onnxruntime({ model: identityOnnx("BFLOAT16", ["n"]) });
      expect(thrownBy(() => triton.bind({ modelName: "bf16", inferFunc }))).toMatch(
        /^UNSUPPORTED .* input 'x' of type bfloat16, which onnxruntime-node cannot pass/,
      );
    });
  });

  /** The same values after they pass through a callback. */
  async function throughCallback(datatype: DataType, x: unknown): Promise<unknown> {
    const { name } = triton.bind({
      modelName: `callback-${datatype}`,
      inputs: [{ name: "x", dtype: datatype, shape: [2] }],
      outputs: [{ name: "y", dtype: datatype, shape: [2] }],
      inferFunc: (requests) => requests.map(({ inputs }) => ({ y: inputs.x })),
    });
    return (await triton.infer(name, { x })).y!.data;
  }

  describe("BYTES that an ONNX string cannot hold", () => {
    it("fail only their own request of a batch", async () => {
      const handle = triton.bind({
        modelName: "strings",
        inputs: [{ name: "x", dtype: "BYTES", shape: [1] }],
        outputs: [{ name: "y", dtype: "BYTES", shape: [1] }],
        inferFunc: onnxruntime({ model: identityOnnx("STRING", ["batch", 1]) }),
      });
      await handle.ready();
      const sent = ["fine", "nul\0inside", Uint8Array.of(0xff, 0xfe), "fine too"].map((text) =>
        handle.inferSample({ x: [text] }),
      );
      expect(await outcomesOf(sent)).toEqual([
        "done",
        "INVALID_ARG cannot pass element 0 of input 'x' as an ONNX string: it contains a NUL byte, which ends a " +
          "string of ONNX Runtime",
        "INVALID_ARG cannot pass element 0 of input 'x' as an ONNX string: it is not UTF-8, which strings of " +
          "ONNX Runtime must be",
        "done",
      ]);
      expect(handle.statistics().executionCount).toBe(1);
      const last = await sent[3]!;
      expect(Buffer.from(last.y.data[0]!).toString()).toBe("fine too");
      expect(await outcomeOf(handle.inferSample({ x: ["again"] }))).toBe("done");
    });
  });
});
