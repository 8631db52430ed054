import type { DataType } from "@tritonjs/core";
import { type OnnxElementType, onnxModel } from "../../examples/onnx-writer/onnx-writer.js";

/** ONNX's names of the data types that pass through Node. */
export const onnxTypes: Readonly<Record<Exclude<DataType, "BF16">, OnnxElementType>> = {
  BOOL: "BOOL",
  UINT8: "UINT8",
  UINT16: "UINT16",
  UINT32: "UINT32",
  UINT64: "UINT64",
  INT8: "INT8",
  INT16: "INT16",
  INT32: "INT32",
  INT64: "INT64",
  FP16: "FLOAT16",
  FP32: "FLOAT",
  FP64: "DOUBLE",
  BYTES: "STRING",
};

/** A model that returns its input `x` as `y`. */
export function identityOnnx(elemType: OnnxElementType, dims: readonly (number | string)[]): Uint8Array {
  return onnxModel({
    name: "identity",
    opset: 17,
    inputs: [{ name: "x", elemType, dims }],
    outputs: [{ name: "y", elemType, dims }],
    nodes: [{ op: "Identity", inputs: ["x"], outputs: ["y"] }],
  });
}

/** `product` = `x` times a matrix of 4 x 3 small whole numbers, and `twice` = `x` + `x`; any number of rows. */
export function matrixOnnx(): Uint8Array {
  return onnxModel({
    name: "matrix",
    opset: 17,
    inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch", 4] }],
    outputs: [
      { name: "product", elemType: "FLOAT", dims: ["batch", 3] },
      { name: "twice", elemType: "FLOAT", dims: ["batch", 4] },
    ],
    nodes: [
      { op: "MatMul", inputs: ["x", "w"], outputs: ["product"] },
      { op: "Add", inputs: ["x", "x"], outputs: ["twice"] },
    ],
    initializers: [
      { name: "w", dims: [4, 3], data: Float32Array.of(1, -2, 3, 4, 5, -6, 7, 8, 9, -10, 11, 12) },
    ],
  });
}
