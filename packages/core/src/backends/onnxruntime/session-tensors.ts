import type { DataType } from "@tritonjs/protocol";
import type { InferenceSession } from "onnxruntime-node";
import { dataTypeOf } from "./ort-tensors.js";

/** A tensor of an open session. */
export interface SessionTensor {
  readonly name: string;
  /** Undefined for a type without a data type in the protocol. */
  readonly dtype: DataType | undefined;
  /** -1 for any size. Empty for a scalar, and also when ONNX Runtime could not infer the rank. */
  readonly shape: readonly number[];
}

/** Inputs and outputs of an open session. Outputs have the shapes that ONNX Runtime inferred. */
export interface SessionTensors {
  readonly inputs: readonly SessionTensor[];
  readonly outputs: readonly SessionTensor[];
}

/** The tensors of a session; undefined with versions of onnxruntime-node that do not provide shapes. */
export function sessionTensors({
  inputMetadata,
  outputMetadata,
}: InferenceSession): SessionTensors | undefined {
  if (!Array.isArray(inputMetadata) || !Array.isArray(outputMetadata)) return undefined;
  return { inputs: inputMetadata.flatMap(toTensor), outputs: outputMetadata.flatMap(toTensor) };
}

function toTensor(value: InferenceSession.ValueMetadata): SessionTensor[] {
  if (!value.isTensor) return [];
  const shape = value.shape.map((dim) => (typeof dim === "number" ? dim : -1));
  return [{ name: value.name, dtype: dataTypeOf(value.type), shape }];
}
