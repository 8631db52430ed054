import type { DataType } from "@tritonjs/core";
import { type OnnxModel, type OnnxNode, onnxModel } from "../../examples/onnx-writer/onnx-writer.js";
import { onnxTypes } from "../support/onnx-models.js";
import type { Element, NamedTensor } from "./clients/client.js";

/** Data types that pass through ONNX Runtime in Node. */
export type OnnxDataType = keyof typeof onnxTypes;

/** An ONNX model with its inputs and the outputs that it must return. */
export interface OnnxCase {
  readonly model: string;
  readonly file: Uint8Array;
  readonly inputs: readonly NamedTensor[];
  readonly outputs: readonly NamedTensor[];
}

const bytes = (value: string): Uint8Array => Uint8Array.from(Buffer.from(value));

/** 0, 1, 2, 3 in each data type. */
export const small: Readonly<Record<OnnxDataType, readonly Element[]>> = {
  BOOL: [0, 1, 1, 0],
  UINT8: [0, 1, 2, 3],
  UINT16: [0, 1, 2, 3],
  UINT32: [0, 1, 2, 3],
  UINT64: [0n, 1n, 2n, 3n],
  INT8: [0, 1, 2, 3],
  INT16: [0, 1, 2, 3],
  INT32: [0, 1, 2, 3],
  INT64: [0n, 1n, 2n, 3n],
  FP16: [0, 0x3c00, 0x4000, 0x4200],
  FP32: [0, 1, 2, 3],
  FP64: [0, 1, 2, 3],
  BYTES: [bytes("0"), bytes("1"), bytes("2"), bytes("3")],
};

/** All of these data types. */
export const types = Object.keys(onnxTypes) as OnnxDataType[];

/** A tensor with its elements. */
export function tensor(
  name: string,
  datatype: OnnxDataType,
  shape: readonly number[],
  elements: readonly Element[],
): NamedTensor {
  return { name, datatype, shape, elements };
}

/** A matrix of two rows. */
export const matrix = (
  name: string,
  datatype: OnnxDataType,
  order: readonly number[] = [0, 1, 2, 3],
): NamedTensor =>
  tensor(
    name,
    datatype,
    [2, order.length / 2],
    order.map((i) => small[datatype][i]!),
  );

/** A case with one node or several; the tensors also declare the inputs and outputs of the graph. */
export function graph(
  model: string,
  nodes: OnnxNode | readonly OnnxNode[],
  inputs: readonly NamedTensor[],
  outputs: readonly NamedTensor[],
  more: Partial<OnnxModel> = {},
): OnnxCase {
  const value = ({ name, datatype, shape }: NamedTensor) => ({
    name,
    elemType: onnxTypes[datatype as Exclude<DataType, "BF16">],
    dims: shape,
  });
  const file = onnxModel({
    name: model,
    opset: 17,
    inputs: inputs.map(value),
    outputs: outputs.map(value),
    nodes: Array.isArray(nodes) ? nodes : [nodes as OnnxNode],
    ...more,
  });
  return { model, file, inputs, outputs };
}

/** One operator. */
export const node = (
  op: string,
  inputs: readonly string[],
  attributes: OnnxNode["attributes"] = {},
  outputs = ["y"],
): OnnxNode => ({
  op,
  inputs,
  outputs,
  attributes,
});
