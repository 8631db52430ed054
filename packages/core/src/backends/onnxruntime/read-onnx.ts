import type { DataType } from "@tritonjs/protocol";
import { type ByteSource, bytesSource, fileSource } from "./byte-source.js";
import { type ProtobufField, walkMessage } from "./protobuf-walk.js";

/** One input or output of an ONNX graph. */
export interface OnnxValue {
  readonly name: string;
  /**
   * Number in ONNX's `TensorProto.DataType`; 0 for a value that is not a tensor, undefined when the file leaves it out.
   */
  readonly elementType: number | undefined;
  /** All dimensions, -1 for a symbolic one; undefined when the file leaves the rank open. */
  readonly dims: readonly number[] | undefined;
}

/** The inputs and outputs that an ONNX file declares. */
export interface OnnxDescription {
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
}

/** ONNX element types that have a data type in the protocol. */
export const ONNX_DATA_TYPES: Readonly<Record<number, DataType>> = {
  1: "FP32",
  2: "UINT8",
  3: "INT8",
  4: "UINT16",
  5: "INT16",
  6: "INT32",
  7: "INT64",
  8: "BYTES",
  9: "BOOL",
  10: "FP16",
  11: "FP64",
  12: "UINT32",
  13: "UINT64",
};

/** ONNX's number for bfloat16. */
export const ONNX_BFLOAT16 = 16;

/** The field numbers of onnx.proto that this file reads. */
const MODEL_GRAPH = 7;
const GRAPH_INITIALIZER = 5;
const GRAPH_INPUT = 11;
const GRAPH_OUTPUT = 12;
const TENSOR_NAME = 8;
const VALUE_NAME = 1;
const VALUE_TYPE = 2;
const TYPE_TENSOR = 1;
const TENSOR_TYPE_ELEMENT = 1;
const TENSOR_TYPE_SHAPE = 2;
const SHAPE_DIM = 1;
const DIM_VALUE = 1;

/**
 * Reads the inputs and outputs of an ONNX model. Weights are not read.
 *
 * @throws errors of `fs` for a file that cannot be read, RangeError for bytes that are not an ONNX model.
 */
export function readOnnx(model: string | Uint8Array): OnnxDescription {
  const source = typeof model === "string" ? fileSource(model) : bytesSource(model);
  try {
    const graph = messages(source, 0, source.length, MODEL_GRAPH)[0];
    if (graph === undefined) throw new RangeError("it has no graph");
    const weights = new Set(
      messages(source, graph.start, graph.end, GRAPH_INITIALIZER).map((tensor) =>
        text(source, tensor, TENSOR_NAME),
      ),
    );
    const values = (field: number) =>
      messages(source, graph.start, graph.end, field).map((value) => readValue(source, value));
    return {
      // Old files list their weights among the inputs.
      inputs: values(GRAPH_INPUT).filter(({ name }) => !weights.has(name)),
      outputs: values(GRAPH_OUTPUT),
    };
  } finally {
    source.close();
  }
}

interface Span {
  readonly start: number;
  readonly end: number;
}

function messages(source: ByteSource, start: number, end: number, number: number): Span[] {
  const found: Span[] = [];
  for (const field of walkMessage(source, start, end)) {
    if (field.number === number && "start" in field) found.push(field);
  }
  return found;
}

function text(source: ByteSource, span: Span, number: number): string {
  const field = messages(source, span.start, span.end, number)[0];
  return field === undefined
    ? ""
    : new TextDecoder().decode(source.read(field.start, field.end - field.start));
}

function number(source: ByteSource, span: Span, wanted: number): number | undefined {
  for (const field of walkMessage(source, span.start, span.end)) {
    if (field.number === wanted && isNumber(field)) return field.value;
  }
  return undefined;
}

function isNumber(field: ProtobufField): field is { number: number; value: number } {
  return "value" in field;
}

function readValue(source: ByteSource, value: Span): OnnxValue {
  const name = text(source, value, VALUE_NAME);
  const type = messages(source, value.start, value.end, VALUE_TYPE)[0];
  if (type === undefined) return { name, elementType: undefined, dims: undefined };
  const tensor = messages(source, type.start, type.end, TYPE_TENSOR)[0];
  if (tensor === undefined) return { name, elementType: 0, dims: undefined };
  const shape = messages(source, tensor.start, tensor.end, TENSOR_TYPE_SHAPE)[0];
  return {
    name,
    elementType: number(source, tensor, TENSOR_TYPE_ELEMENT) ?? 0,
    dims:
      shape &&
      messages(source, shape.start, shape.end, SHAPE_DIM).map((dim) => {
        const size = number(source, dim, DIM_VALUE) ?? -1;
        // Some exporters write -1, which reads as a huge number here.
        return Number.isSafeInteger(size) ? size : -1;
      }),
  };
}
