import { type ModelConfig, type Tensor, TritonError } from "@tritonjs/protocol";

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
  return new TritonError("INVALID_ARG", `input '${name}'${place}: ${text}`, {
    reason: "INVALID_INPUT",
    cause,
  });
}

/** True if the tensors of a configuration have an axis of rows: the batch axis, or one that is written in the dims. */
export function hasRows({ maxBatchSize, input }: ModelConfig, name: string): boolean {
  return maxBatchSize > 0 || (input.find((one) => one.name === name)?.dims.length ?? 1) > 1;
}
