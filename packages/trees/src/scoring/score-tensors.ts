import { shapeToString, Tensor, TritonError } from "@tritonjs/protocol";
import type { Scorer } from "./scorer.js";

export const INPUT = "input__0";
export const OUTPUT = "output__0";
export const EXPLANATION = "treeshap_output";

/** How outputs are shaped. */
export interface OutputShapes {
  /** True if dimensions of 1 are left out, as Triton's backend does: [rows] rather than [rows,1]. */
  readonly squeezed: boolean;
}

/**
 * Scores the rows of a request in slices of about a millisecond.
 *
 * @param explains whether the request wants `treeshap_output`
 * @param pause called between two slices
 * @throws TritonError INVALID_ARG for rows with another number of columns
 */
export async function scoreTensors(
  scorer: Scorer,
  inputs: ReadonlyMap<string, Tensor>,
  rows: number,
  { squeezed }: OutputShapes,
  explains: boolean,
  pause: (() => Promise<void>) | undefined,
): Promise<Map<string, Tensor>> {
  const values = valuesOf(scorer, inputs.get(INPUT), rows);
  const { columns } = scorer.plan;
  const answers = new Float32Array(rows * columns);
  const explanations = explains ? new Float32Array(rows * scorer.explanationColumns) : undefined;
  const step = pause === undefined ? rows : scorer.rowsPerSlice;
  for (let row = 0; row < rows; row += step) {
    if (row > 0) await pause!();
    const count = Math.min(step, rows - row);
    scorer.score(values, row, count, answers);
    if (explanations !== undefined) scorer.explain(values, row, count, explanations);
  }
  const shapeOf = (width: number) =>
    squeezed ? [rows, width].filter((dim, i) => i === 0 || dim !== 1) : [rows, width];
  const outputs = new Map([[OUTPUT, Tensor.fromElements("FP32", shapeOf(columns), answers)]]);
  if (explanations !== undefined) {
    const shape = shapeOf(scorer.explanationColumns);
    outputs.set(EXPLANATION, Tensor.fromElements("FP32", shape, explanations));
  }
  return outputs;
}

function valuesOf(scorer: Scorer, tensor: Tensor | undefined, rows: number): Float32Array {
  const { features } = scorer.forest;
  const values = tensor?.elements;
  if (values instanceof Float32Array && values.length === rows * features) return values;
  throw new TritonError(
    "INVALID_ARG",
    `input '${INPUT}': expected shape ${shapeToString([rows, features])}, got ${shapeToString(tensor?.shape ?? [])}`,
    { reason: "INVALID_INPUT" },
  );
}
