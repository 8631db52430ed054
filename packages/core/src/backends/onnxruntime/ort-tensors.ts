import { type DataType, type Elements, Tensor, TritonError } from "@tritonjs/protocol";
import type { Tensor as OrtTensor } from "onnxruntime-node";
import type { Tensors } from "../../batch/merge-inputs.js";

const ORT_TYPES: Record<Exclude<DataType, "BF16">, string> = {
  BOOL: "bool",
  UINT8: "uint8",
  UINT16: "uint16",
  UINT32: "uint32",
  UINT64: "uint64",
  INT8: "int8",
  INT16: "int16",
  INT32: "int32",
  INT64: "int64",
  FP16: "float16",
  FP32: "float32",
  FP64: "float64",
  BYTES: "string",
};

const DATA_TYPES = new Map<string, DataType>(
  Object.entries(ORT_TYPES).map(([ours, theirs]) => [theirs, ours as DataType]),
);

/** The data type for a type of ONNX Runtime; undefined when the protocol does not have it. */
export function dataTypeOf(ortType: string): DataType | undefined {
  return DATA_TYPES.get(ortType);
}

const NO_SCALARS: ReadonlySet<string> = new Set();

const decoder = new TextDecoder("utf-8", { fatal: true });
const encoder = new TextEncoder();

/**
 * Converts inputs to the form that `session.run` takes. They are plain objects, because the `Tensor` constructor
 * rejects float16 on newer versions of Node.
 *
 * @param scalars names of inputs without dimensions in the model's file: a configuration has to give them one
 * @throws TritonError INVALID_ARG for text that ONNX Runtime cannot hold.
 */
export function toFeeds(
  inputs: Tensors,
  scalars: ReadonlySet<string> = NO_SCALARS,
): Record<string, OrtTensor> {
  const feeds: Record<string, unknown> = {};
  for (const [name, tensor] of inputs) {
    feeds[name] = {
      type: ORT_TYPES[tensor.datatype as Exclude<DataType, "BF16">],
      dims: scalars.has(name) ? [] : tensor.shape,
      data: tensor.datatype === "BYTES" ? toStrings(name, tensor.elements as Uint8Array[]) : tensor.elements,
      location: "cpu",
    };
  }
  return feeds as Record<string, OrtTensor>;
}

function toStrings(name: string, elements: readonly Uint8Array[]): string[] {
  return elements.map((element, i) => {
    if (element.includes(0))
      throw unfit(name, i, "it contains a NUL byte, which ends a string of ONNX Runtime");
    try {
      return decoder.decode(element);
    } catch {
      throw unfit(name, i, "it is not UTF-8, which strings of ONNX Runtime must be");
    }
  });
}

function unfit(name: string, index: number, why: string): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `cannot pass element ${index} of input '${name}' as an ONNX string: ${why}`,
    { reason: "INVALID_INPUT" },
  );
}

/** Converts the session's results to tensors over the same memory. */
export function fromResults(results: Readonly<Record<string, OrtTensor>>): Map<string, Tensor> {
  return new Map(
    Object.entries(results).map(([name, { type, dims, data }]) => {
      const datatype = DATA_TYPES.get(type);
      if (datatype === undefined) {
        throw new TritonError(
          "UNSUPPORTED",
          `output '${name}' has type ${type}, which the protocol cannot carry`,
          { reason: "MODEL_NOT_SUPPORTED" },
        );
      }
      return [name, Tensor.fromElements(datatype, [...dims], toElements(datatype, data))];
    }),
  );
}

function toElements(datatype: DataType, data: OrtTensor["data"]): Elements {
  if (datatype === "BYTES") return (data as string[]).map((text) => encoder.encode(text));
  // Newer versions of Node have a Float16Array. Here the elements of FP16 are their bits.
  if (datatype === "FP16" && ArrayBuffer.isView(data) && !(data instanceof Uint16Array)) {
    return new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2);
  }
  return data as Elements;
}
