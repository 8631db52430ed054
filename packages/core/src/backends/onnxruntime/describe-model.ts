import { resolve } from "node:path";
import { type DataType, type DescribedTensor, TritonError } from "@tritonjs/protocol";

import type { ModelDescription } from "../../instance/backend.js";
import { describeNotOnnx } from "./not-onnx.js";
import {
  ONNX_BFLOAT16,
  ONNX_DATA_TYPES,
  type OnnxDescription,
  type OnnxValue,
  readOnnx,
} from "./read-onnx.js";
import type { SessionTensor, SessionTensors } from "./session-tensors.js";

/**
 * Describes an ONNX model from its file and, where there is one, an open session. The session infers the shapes of
 * outputs, whatever the file declares. Only the file tells scalars from tensors of unknown rank.
 *
 * @param passesBfloat16 true for an engine that can pass tensors of bfloat16
 * @throws TritonError NOT_FOUND for a missing file, INVALID_ARG for a file that is not an ONNX model, UNSUPPORTED for
 * tensors that cannot pass through Node.
 */
export function describeOnnxModel(
  model: string | Uint8Array,
  session?: SessionTensors,
  file: OnnxDescription = readOnnxFile(model),
  passesBfloat16 = false,
): ModelDescription {
  const label = labelOf(model);
  return {
    inputs: file.inputs.map((value) => toSpec(value, "input", session?.inputs)),
    outputs: file.outputs.map((value) => toSpec(value, "output", session?.outputs)),
  };

  function toSpec(value: OnnxValue, kind: string, inSession: readonly SessionTensor[] = []): DescribedTensor {
    const { name, elementType, dims } = value;
    const inferred = inSession.find((one) => one.name === name);
    const dtype = elementType === undefined ? inferred?.dtype : dataTypeOf(elementType);
    if (dtype === undefined)
      throw unsupported(`cannot serve the ONNX model ${label}: it has ${kind} '${name}'`, elementType);
    const shape = inferred !== undefined && inferred.shape.length > 0 ? inferred.shape : dims;
    return shape === undefined ? { name, dtype, shape: [], rankUnknown: true } : { name, dtype, shape };
  }

  function dataTypeOf(elementType: number): DataType | undefined {
    return elementType === ONNX_BFLOAT16 && passesBfloat16 ? "BF16" : ONNX_DATA_TYPES[elementType];
  }
}

/** Whether the file leaves out the shape or the type of an output. A session would infer both. */
export function lacksShapes({ outputs }: OnnxDescription): boolean {
  return outputs.some(({ elementType, dims }) => elementType === undefined || (elementType !== 0 && !dims));
}

function unsupported(what: string, elementType: number | undefined): TritonError {
  const why =
    elementType === ONNX_BFLOAT16
      ? "of type bfloat16, which onnxruntime-node cannot pass; cast it to float32 or float16 inside the model, or use the engine 'native'"
      : `of ${typeName(elementType)}, which the protocol cannot carry`;
  return new TritonError("UNSUPPORTED", `${what} ${why}`, { reason: "MODEL_NOT_SUPPORTED" });
}

/** ONNX types that the protocol does not have. */
const OTHER_TYPES: Readonly<Record<number, string>> = {
  0: "a type that is not a tensor (sequence, map, optional or sparse)",
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

function typeName(elementType: number | undefined): string {
  if (elementType === undefined) return "a type that the file does not declare";
  return OTHER_TYPES[elementType] ?? `ONNX type ${elementType}`;
}

function labelOf(model: string | Uint8Array): string {
  return typeof model === "string" ? `'${model}'` : "given as bytes";
}

/**
 * Reads inputs and outputs of a model file.
 *
 * @throws TritonError NOT_FOUND for a missing file, INVALID_ARG for a file that is not an ONNX model
 */
export function readOnnxFile(model: string | Uint8Array): OnnxDescription {
  const label = labelOf(model);
  try {
    return readOnnx(model);
  } catch (error) {
    if (error instanceof RangeError) {
      const what = describeNotOnnx(model, error.message);
      throw new TritonError("INVALID_ARG", `cannot read the ONNX model ${label}: ${what}`, {
        reason: "INVALID_MODEL",
        cause: error,
      });
    }
    throw new TritonError("NOT_FOUND", `cannot open the ONNX model ${label}: ${whyNotOpened(model, error)}`, {
      reason: "MODEL_FILES_NOT_FOUND",
      cause: error,
    });
  }
}

/** Why a file cannot be opened. A relative path is resolved, because it may be relative to another directory than meant. */
function whyNotOpened(model: string | Uint8Array, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (typeof model === "string" && code === "ENOENT") return `there is no file '${resolve(model)}'`;
  if (typeof model === "string" && code === "EISDIR") return `'${resolve(model)}' is a directory`;
  return TritonError.from(error).message;
}
