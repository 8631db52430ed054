import type { OnnxSession } from "@tritonjs/core/onnxruntime";
import { float16ToFloat32, Tensor } from "@tritonjs/protocol";
import type { DecoderGraph } from "./decoder-graph.js";
import { alignRight, type KvBlock, type KvSlice } from "./kv-block.js";

/** One text in a pass: its keys and values so far, and the tokens that follow. */
export interface PassRow {
  readonly past: KvSlice | undefined;
  /** At least one token. */
  readonly tokens: readonly number[];
}

/** Result of a pass for one text. */
export interface PassResult {
  /** Its keys and values, those of the new tokens included. */
  readonly past: KvSlice;
  /** Scores of all tokens after the last one. The array is the caller's. Undefined if they were not asked for. */
  readonly scores: Float32Array | undefined;
}

/**
 * Computes the next tokens of several texts in one run of the graph. Texts of different lengths are padded where the
 * attention mask hides it:
 *
 * ```
 *          past, to the right   new tokens, to the left
 * row 0    . . . a a a          a a .
 * row 1    b b b b b b          b b b
 * ```
 *
 * So the columns of a text are adjacent before and after the run, and each new token sees at least itself.
 */
export async function forwardPass(
  session: OnnxSession,
  graph: DecoderGraph,
  rows: readonly PassRow[],
  wantsScores: boolean,
): Promise<PassResult[]> {
  const block = alignRight(
    rows.map(({ past }) => past),
    graph.kv,
  );
  const columns = Math.max(...rows.map(({ tokens }) => tokens.length));
  const inputs = passInputs(graph, block, rows, columns);
  const { layers } = graph.kv;
  const names = layers.map(({ output }) => output);
  const outputs = await session.runTensors(inputs, wantsScores ? ["logits", ...names] : names);
  const next: KvBlock = {
    tensors: names.map((name) => outputs.get(name)!),
    rows: rows.length,
    width: block.width + columns,
  };
  const logits = outputs.get("logits");
  return rows.map(({ past, tokens }, row) => {
    const length = past?.length ?? 0;
    return {
      past: { block: next, row, start: block.width - length, length: length + tokens.length },
      scores: logits === undefined ? undefined : scoresOf(logits, row, tokens.length, columns),
    };
  });
}

function passInputs(
  graph: DecoderGraph,
  { tensors, width }: KvBlock,
  rows: readonly PassRow[],
  columns: number,
): Map<string, Tensor> {
  const count = rows.length;
  const total = width + columns;
  const ids = new BigInt64Array(count * columns);
  const positions = new BigInt64Array(count * columns);
  const mask = new BigInt64Array(count * total);
  for (const [row, { past, tokens }] of rows.entries()) {
    const length = past?.length ?? 0;
    for (let i = 0; i < tokens.length; i++) {
      ids[row * columns + i] = BigInt(tokens[i]!);
      positions[row * columns + i] = BigInt(length + i);
    }
    mask.fill(1n, row * total + width - length, row * total + width + tokens.length);
  }
  const inputs = new Map([
    ["input_ids", integers(graph, [count, columns], ids)],
    ["attention_mask", integers(graph, [count, total], mask)],
  ]);
  if (graph.hasPositions) inputs.set("position_ids", integers(graph, [count, columns], positions));
  if (graph.hasCacheBranch) {
    inputs.set("use_cache_branch", Tensor.fromElements("BOOL", [1], Uint8Array.of(width > 0 ? 1 : 0)));
  }
  if (graph.keepsLastLogits) {
    // The last token of a shorter row is not in the last column.
    const kept = rows.every(({ tokens }) => tokens.length === columns) ? 1 : columns;
    inputs.set("num_logits_to_keep", Tensor.fromElements("INT64", [], BigInt64Array.of(BigInt(kept))));
  }
  for (const [i, { input }] of graph.kv.layers.entries()) inputs.set(input, tensors[i]!);
  return inputs;
}

function integers(graph: DecoderGraph, shape: readonly number[], values: BigInt64Array<ArrayBuffer>): Tensor {
  if (graph.integers === "INT64") return Tensor.fromElements("INT64", shape, values);
  return Tensor.fromElements("INT32", shape, Int32Array.from(values, Number));
}

/** Scores after the last token of a row. */
function scoresOf(logits: Tensor, row: number, tokens: number, columns: number): Float32Array {
  const [, kept, size] = logits.shape as [number, number, number];
  const column = kept === columns ? tokens - 1 : kept - 1;
  const from = (row * kept + column) * size;
  if (logits.datatype === "FP16")
    return float16ToFloat32((logits.elements as Uint16Array).subarray(from, from + size));
  return (logits.elements as Float32Array).subarray(from, from + size);
}
