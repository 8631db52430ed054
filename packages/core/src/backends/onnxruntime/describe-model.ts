import { TritonError } from "../../errors/triton-error.js";
import type { ModelDescription } from "../../instance/backend.js";
import { ONNX_BFLOAT16, ONNX_DATA_TYPES, type OnnxValue, readOnnx } from "./read-onnx.js";

/**
 * Describes an ONNX model from its file.
 *
 * @throws TritonError NOT_FOUND for a missing file, INVALID_ARG for one that is no ONNX model, UNSUPPORTED for
 * tensors that cannot pass through Node.
 */
export function describeOnnxModel(model: string | Uint8Array): ModelDescription {
  const label = typeof model === "string" ? `'${model}'` : "given as bytes";
  const { inputs, outputs } = read(model, label);
  return {
    inputs: inputs.map((value) => toSpec(value, "input")),
    outputs: outputs.map((value) => toSpec(value, "output")),
  };

  function toSpec({ name, elementType, dims }: OnnxValue, kind: string) {
    if (elementType === ONNX_BFLOAT16) {
      throw new TritonError(
        "UNSUPPORTED",
        `the ONNX model ${label} has ${kind} '${name}' of type bfloat16, which onnxruntime-node cannot pass; ` +
          "cast it to float32 or float16 inside the model",
      );
    }
    const dtype = ONNX_DATA_TYPES[elementType];
    if (dtype === undefined) {
      throw new TritonError(
        "UNSUPPORTED",
        `the ONNX model ${label} has ${kind} '${name}' of ${typeName(elementType)}, which is no tensor type of the protocol`,
      );
    }
    if (dims === undefined) {
      throw new TritonError(
        "UNSUPPORTED",
        `the ONNX model ${label} leaves the rank of ${kind} '${name}' open`,
      );
    }
    return { name, dtype, shape: dims };
  }
}

/** ONNX types that the protocol has not. */
const OTHER_TYPES: Readonly<Record<number, string>> = {
  0: "a type that is no tensor (sequence, map, optional or sparse)",
  14: "type complex64",
  15: "type complex128",
  17: "type float8e4m3fn",
  18: "type float8e4m3fnuz",
  19: "type float8e5m2",
  20: "type float8e5m2fnuz",
  21: "type uint4",
  22: "type int4",
  23: "type float4e2m1",
  24: "type float8e8m0",
  25: "type uint2",
  26: "type int2",
};

function typeName(elementType: number): string {
  return OTHER_TYPES[elementType] ?? `ONNX type ${elementType}`;
}

function read(model: string | Uint8Array, label: string) {
  try {
    return readOnnx(model);
  } catch (error) {
    if (error instanceof RangeError) {
      throw new TritonError("INVALID_ARG", `the ONNX model ${label} cannot be read: ${error.message}`, {
        cause: error,
      });
    }
    throw new TritonError(
      "NOT_FOUND",
      `the ONNX model ${label} cannot be opened: ${TritonError.from(error).message}`,
      {
        cause: error,
      },
    );
  }
}
