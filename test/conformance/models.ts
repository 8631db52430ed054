import { batch, type DataType, sample, type Triton, TritonError } from "@tritonjs/core";
import { DATA_TYPES } from "@tritonjs/protocol";

/** The models of the test cases. */
export function bindConformanceModels(triton: Triton): void {
  for (const datatype of DATA_TYPES) bindIdentities(triton, datatype);
  bindPair(triton);
  for (const version of [1, 2]) bindVersion(triton, version);
  bindTold(triton);
  bindThrows(triton);
}

/**
 * `scalar_T` of shape [1], `matrix_T` with two free dimensions, `rows_T` with two columns and batches of up to
 * eight.
 */
function bindIdentities(triton: Triton, dtype: DataType): void {
  const specs = (shape: readonly number[]) => ({
    inputs: [{ name: "x", dtype, shape }],
    outputs: [{ name: "y", dtype, shape }],
  });
  triton.bind({
    modelName: `scalar_${dtype}`,
    ...specs([1]),
    inferFunc: sample(({ x }) => ({ y: x! })),
  });
  triton.bind({
    modelName: `matrix_${dtype}`,
    ...specs([-1, -1]),
    inferFunc: sample(({ x }) => ({ y: x! })),
  });
  triton.bind({
    modelName: `rows_${dtype}`,
    ...specs([2]),
    inferFunc: batch(({ x }) => ({ y: x! })),
    config: { maxBatchSize: 8 },
  });
}

/** `pair`: the sum and the difference of `a` and `b`. */
function bindPair(triton: Triton): void {
  triton.bind({
    modelName: "pair",
    inputs: [
      { name: "a", dtype: "FP32", shape: [1] },
      { name: "b", dtype: "FP32", shape: [1] },
    ],
    outputs: [
      { name: "sum", dtype: "FP32", shape: [1] },
      { name: "difference", dtype: "FP32", shape: [1] },
    ],
    inferFunc: batch(({ a, b }) => ({
      sum: a.data.map((value, i) => value + b.data[i]!),
      difference: a.data.map((value, i) => value - b.data[i]!),
    })),
    config: { maxBatchSize: 8 },
  });
}

/** `versions`: returns the number of the version that answered. */
function bindVersion(triton: Triton, modelVersion: number): void {
  triton.bind({
    modelName: "versions",
    modelVersion,
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "version", dtype: "INT32", shape: [1] }],
    inferFunc: sample((_inputs, context) => ({ version: [context.modelVersion] })),
  });
}

/** `told`: returns as text what its callback gets with the request. */
function bindTold(triton: Triton): void {
  triton.bind({
    modelName: "told",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "told", dtype: "BYTES", shape: [1] }],
    inferFunc: sample((_inputs, { requests: [request] }) => ({
      told: [toldText(request!.id, request!.parameters)],
    })),
  });
}

/** The answer of `told`: `id=...; name=type:value; ...`, sorted by name. */
export function toldText(id: string, parameters: Readonly<Record<string, unknown>>): string {
  const told = Object.entries(parameters)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${typeof value}:${value}`);
  return [`id=${id}`, ...told].join("; ");
}

/**
 * `throws`: follows its parameters: a TritonError of `code`, a plain Error, an Error among results, or a wrong
 * output.
 */
function bindThrows(triton: Triton): void {
  triton.bind({
    modelName: "throws",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: ([request]) => {
      const { code, as } = request!.parameters;
      if (as === "wrong output") return [{ y: [1, 2] }];
      if (as === "plain Error") throw new TypeError("x is not what it was");
      if (as === "result") return [new Error("this request alone is wrong")];
      throw new TritonError(code as TritonError["code"], `the model says ${code}`);
    },
    config: { batching: false },
  });
}
