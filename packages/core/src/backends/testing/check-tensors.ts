import {
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  shapeToString,
  TritonError,
} from "@tritonjs/protocol";

/** A tensor that a backend requires. */
export interface FixedTensor {
  readonly name: string;
  readonly dataType: string;
  /** Number of elements: one, or any. */
  readonly size: "one" | "any";
}

/**
 * Checks that a model has exactly the tensors that its backend works with, in their order.
 *
 * @throws TritonError INVALID_ARG with the words of Triton's example backends.
 */
export function checkTensors(
  { input, output }: ModelConfig,
  inputs: readonly FixedTensor[],
  outputs: readonly FixedTensor[],
): void {
  checkCount("input", input, inputs);
  checkCount("output", output, outputs);
  const pairs = [
    ...inputs.map((expected, i) => ({ kind: "input", place: i, expected, got: input[i]! })),
    ...outputs.map((expected, i) => ({ kind: "output", place: i, expected, got: output[i]! })),
  ];
  for (const { kind, place, expected, got } of pairs) {
    if (got.name === expected.name) continue;
    refuse(`expected ${ORDINALS[place]} ${kind} tensor name to be ${expected.name}, got ${got.name}`);
  }
  for (const { expected, got } of pairs) checkShape(expected, got);
  for (const { expected, got } of pairs) {
    if (got.dataType === expected.dataType) continue;
    const type = expected.dataType.replace("TYPE_", "");
    refuse(`expected ${expected.name} datatype to be ${type}, got ${got.dataType}`);
  }
}

const ORDINALS = ["first", "second", "third"];

function checkCount(
  kind: string,
  got: readonly (ModelInput | ModelOutput)[],
  expected: readonly FixedTensor[],
): void {
  if (got.length === expected.length) return;
  refuse(`expected ${expected.length} ${kind}${expected.length === 1 ? "" : "s"}, got ${got.length}`);
}

function checkShape({ name, size }: FixedTensor, { dims }: ModelInput | ModelOutput): void {
  const shape = shapeToString(dims);
  if (size === "any" && dims.length !== 1)
    refuse(`expected ${name} shape to have one dimension, got ${shape}`);
  if (size === "one" && shape !== "[1]") refuse(`expected ${name} shape to be [1], got ${shape}`);
}

function refuse(text: string): never {
  throw new TritonError("INVALID_ARG", text, { reason: "INVALID_CONFIG" });
}
