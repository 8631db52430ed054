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
 * Scores the rows of a request. More rows than `scorer.rowsPerSlice` are scored in slices of about a millisecond if
 * there is a `pause`.
 *
 * @param explains whether the request wants `treeshap_output`
 * @param pause called between two slices
 * @returns the outputs, or a promise of them if there is a pause between slices
 * @throws TritonError INVALID_ARG for rows with another number of columns
 */
export function scoreTensors(
  scorer: Scorer,
  inputs: ReadonlyMap<string, Tensor>,
  rows: number,
  { squeezed }: OutputShapes,
  explains: boolean,
  pause: (() => Promise<void>) | undefined,
): Map<string, Tensor> | Promise<Map<string, Tensor>> {
  const values = valuesOf(scorer, inputs.get(INPUT), rows);
  const answers = outputOf(rows, scorer.plan.columns, squeezed);
  const explanations = explains ? outputOf(rows, scorer.explanationColumns, squeezed) : undefined;
  const score = (row: number, count: number) => {
    scorer.score(values, row, count, answers.values);
    if (explanations !== undefined) scorer.explain(values, row, count, explanations.values);
  };
  const outputs = new Map([[OUTPUT, answers.tensor]]);
  if (explanations !== undefined) outputs.set(EXPLANATION, explanations.tensor);
  if (pause !== undefined && rows > scorer.rowsPerSlice)
    return inSlices(rows, scorer.rowsPerSlice, score, pause).then(() => outputs);
  score(0, rows);
  return outputs;
}

async function inSlices(
  rows: number,
  step: number,
  score: (row: number, count: number) => void,
  pause: () => Promise<void>,
): Promise<void> {
  for (let row = 0; row < rows; row += step) {
    if (row > 0) await pause();
    score(row, Math.min(step, rows - row));
  }
}

/** An output tensor, and its elements to write to. */
function outputOf(rows: number, width: number, squeezed: boolean) {
  const values = new Float32Array(rows * width);
  const shape = !squeezed ? [rows, width] : width === 1 ? [rows] : [rows, width];
  return { values, tensor: Tensor.fromElements("FP32", shape, values) };
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
