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

/** A model with an input `x_FP32` and an equal output `y_FP32` for each data type. */
export function allTypesOnnx(dims: readonly (number | string)[]): Uint8Array {
  const types = Object.entries(onnxTypes);
  return onnxModel({
    name: "types",
    opset: 17,
    inputs: types.map(([name, elemType]) => ({ name: `x_${name}`, elemType, dims })),
    outputs: types.map(([name, elemType]) => ({ name: `y_${name}`, elemType, dims })),
    nodes: types.map(([name]) => ({ op: "Identity", inputs: [`x_${name}`], outputs: [`y_${name}`] })),
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

/**
 * A model that takes as long as its input says: `y` = `x` + 1 after `x` rounds, the largest of the batch, of a product
 * of two matrices of 128 x 128. A round takes about a millisecond. Any number of rows.
 */
export function roundsOnnx(): Uint8Array {
  const size = 128;
  const matrix = new Float32Array(size * size).fill(1 / size);
  const value = (name: string, elemType: OnnxElementType, dims: readonly (number | string)[]) => ({
    name,
    elemType,
    dims,
  });
  return onnxModel({
    name: "rounds",
    opset: 17,
    inputs: [value("x", "FLOAT", ["batch", 1])],
    outputs: [value("y", "FLOAT", ["batch", 1])],
    initializers: [
      { name: "matrix", dims: [size, size], data: matrix },
      { name: "go", dims: [], data: Uint8Array.of(1), elemType: "BOOL" },
    ],
    nodes: [
      { op: "ReduceMax", inputs: ["x"], outputs: ["most"], attributes: { keepdims: { int: 0 } } },
      { op: "Cast", inputs: ["most"], outputs: ["rounds"], attributes: { to: { int: 7 } } },
      {
        op: "Loop",
        inputs: ["rounds", "go", "matrix"],
        outputs: ["product"],
        attributes: {
          body: {
            graph: {
              name: "round",
              inputs: [value("i", "INT64", []), value("more", "BOOL", []), value("m", "FLOAT", [size, size])],
              outputs: [value("again", "BOOL", []), value("n", "FLOAT", [size, size])],
              nodes: [
                { op: "Identity", inputs: ["more"], outputs: ["again"] },
                { op: "MatMul", inputs: ["m", "matrix"], outputs: ["n"] },
              ],
            },
          },
        },
      },
      // The mean of the product is 1 / 128, whatever the number of rounds.
      { op: "ReduceMean", inputs: ["product"], outputs: ["mean"], attributes: { keepdims: { int: 0 } } },
      { op: "Div", inputs: ["mean", "mean"], outputs: ["one"] },
      { op: "Add", inputs: ["x", "one"], outputs: ["y"] },
    ],
  });
}

/** A model with entries in its metadata. */
export function withMetadata(model: Uint8Array, entries: Readonly<Record<string, string>>): Uint8Array {
  const field = (number: number, content: Uint8Array) => {
    const length: number[] = [];
    for (let left = content.byteLength; ; left >>>= 7) {
      length.push(left > 0x7f ? (left & 0x7f) | 0x80 : left);
      if (left <= 0x7f) break;
    }
    return Buffer.concat([Uint8Array.of(number * 8 + 2, ...length), content]);
  };
  const added = Object.entries(entries).map(([key, value]) =>
    field(14, Buffer.concat([field(1, Buffer.from(key)), field(2, Buffer.from(value))])),
  );
  return new Uint8Array(Buffer.concat([model, ...added]));
}
