import type { AutoCompleteConfig } from "@tritonjs/core/backend";
import { completeStep } from "@tritonjs/core/internal";
import {
  errorFor,
  type ModelConfig,
  type Tensor,
  type TensorSpec,
  type TritonError,
} from "@tritonjs/protocol";

function optionText(value: unknown): string {
  return typeof value === "string"
    ? `'${value}'`
    : Array.isArray(value)
      ? `[${value.join(", ")}]`
      : String(value);
}

/** Creates the error of an invalid option. */
export function mediaOptionError(name: string, expected: string, got: unknown): TritonError {
  return errorFor("INVALID_OPTION", `${name}: expected ${expected}, got ${optionText(got)}`);
}

/** @throws TritonError INVALID_ARG unless the value is an integer in the range */
export function assertInteger(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw mediaOptionError(name, `an integer from ${least} to ${most}`, value);
}

/** @throws TritonError INVALID_ARG unless the value is one of the words */
export function assertOneOf(name: string, value: string, words: readonly string[]): void {
  if (words.includes(value)) return;
  throw mediaOptionError(name, `one of ${words.join(", ")}`, value);
}

/**
 * The elements of an input that has one file for each row.
 *
 * @throws TritonError INVALID_ARG unless there is exactly one
 */
export function filesOf(input: Tensor | undefined, name: string, hasRows: boolean): readonly Uint8Array[] {
  const files = input === undefined ? [] : (input.elements as readonly Uint8Array[]);
  if (hasRows || files.length === 1) return files;
  throw badFile(name, undefined, `expected one file, got ${files.length}`);
}

/**
 * The error for a file of a request.
 *
 * @param row index of the row; undefined for a request with a single row
 */
export function badFile(name: string, row: number | undefined, text: string, cause?: unknown): TritonError {
  const place = row === undefined ? "" : `, row ${row}`;
  return errorFor("INVALID_INPUT", `input '${name}'${place}: ${text}`, { cause });
}

/** True if the tensors of a configuration have an axis of rows: the batch axis, or one that is written in the dims. */
export function hasRows({ maxBatchSize, input }: ModelConfig, name: string): boolean {
  return maxBatchSize > 0 || (input.find((one) => one.name === name)?.dims.length ?? 1) > 1;
}

/** Names of the state of a step that goes on from request to request: as input, and as output. */
export const PAST = "past";
export const PRESENT = "present";

/** Like {@link completeStep}, for a step that may have a state. A state is written as such, not as a tensor. */
export function completeTensors(
  config: AutoCompleteConfig,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
): void {
  completeStep(
    config,
    inputs.filter(({ name }) => name !== PAST),
    outputs.filter(({ name }) => name !== PRESENT),
  );
}
