import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { sequenceState, type Triton } from "@tritonjs/core";
import { onnxModel } from "@tritonjs-examples/onnx-writer";

const inputs = [{ name: "x", dtype: "FP32", shape: [1] }] as const;
const outputs = [{ name: "sum", dtype: "FP32", shape: [1] }] as const;
const maxSequenceIdleMicroseconds = 60_000_000;

/** An accumulator as a callback: it keeps its sum in an object of its own, without tensors. */
export function bindAccumulator(triton: Triton) {
  const totals = sequenceState(() => ({ sum: 0 }));
  return triton.bind({
    modelName: "accumulator",
    inputs,
    outputs,
    inferFunc: (requests) =>
      requests.map(({ sequence, inputs: { x } }) => {
        const total = totals(sequence);
        total.sum += x.get(0, 0);
        return { sum: [[total.sum]] };
      }),
    config: { maxBatchSize: 16, sequence: { maxSequenceIdleMicroseconds } },
  });
}

/**
 * The same as an ONNX model, which cannot keep state: the server passes its output `total` to its input `past` of the
 * next request.
 */
export function bindOnnxAccumulator(triton: Triton) {
  return triton.bind({
    modelName: "accumulator-onnx",
    inputs,
    outputs,
    inferFunc: onnxruntime({ model: makeAccumulator() }),
    config: {
      maxBatchSize: 16,
      sequence: {
        maxSequenceIdleMicroseconds,
        states: [{ input: "past", output: "total", dtype: "FP32", shape: [1], initial: [0] }],
      },
    },
  });
}

function makeAccumulator(): Uint8Array {
  const dims = ["batch", 1];
  return onnxModel({
    name: "accumulator",
    opset: 13,
    inputs: ["x", "past"].map((name) => ({ name, elemType: "FLOAT", dims })),
    outputs: ["sum", "total"].map((name) => ({ name, elemType: "FLOAT", dims })),
    nodes: [
      { op: "Add", inputs: ["x", "past"], outputs: ["total"] },
      { op: "Identity", inputs: ["total"], outputs: ["sum"] },
    ],
  });
}
