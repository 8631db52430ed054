import type { ExecutionResult, WorkerBatch, WorkerModel } from "@tritonjs/core/backend";
import type { ModelCaller, Tensors } from "@tritonjs/core/internal";
import { splitOutputs } from "@tritonjs/core/internal/worker";
import { errorFor, ndArrayOf, Tensor, type TensorSpec, TritonError } from "@tritonjs/protocol";
import { PAST, PRESENT } from "./media-parameters.js";
import { greedySearch, type Hypothesis, type NgramSettings, PrefixBeamSearch } from "./prefix-beam-search.js";

/** Names of the tensors, as in WeNet's model repository. */
export const ENCODED = "encoder_out";
export const LENGTHS = "encoder_out_lens";
export const LOG_PROBS = "batch_log_probs";
export const IDS = "batch_log_probs_idx";
export const WORDS = "WORDS";

/** Longer texts than sentences have are not scored again: the first one stands. */
const MOST_RESCORED = 200;

/** Options with their defaults, all checked. Structured cloning keeps them. */
export interface CtcPlan {
  readonly vocabulary: readonly string[];
  readonly method: "prefix_beam" | "greedy";
  readonly beam: number;
  readonly cutoffProb: number;
  readonly hotWords: ReadonlyMap<string, number>;
  readonly ngram: NgramSettings | undefined;
  readonly rescorer: string | undefined;
  readonly words: boolean;
  readonly frameSeconds: number;
  readonly stream: boolean;
  readonly outputName: string;
}

/** The tensors of a plan, without the axis of the rows. */
export function ctcTensors({ rescorer, words, stream, outputName }: CtcPlan): {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
} {
  const inputs: TensorSpec[] = [
    { name: LENGTHS, dtype: "INT32", shape: [1] },
    { name: LOG_PROBS, dtype: "FP32", shape: [-1, -1] },
    { name: IDS, dtype: "INT64", shape: [-1, -1] },
  ];
  const outputs: TensorSpec[] = [{ name: outputName, dtype: "BYTES", shape: [1] }];
  if (rescorer !== undefined) inputs.push({ name: ENCODED, dtype: "FP32", shape: [-1, -1] });
  if (words) outputs.push({ name: WORDS, dtype: "BYTES", shape: [1] });
  if (stream) {
    inputs.push({ name: PAST, dtype: "BYTES", shape: [1] });
    outputs.push({ name: PRESENT, dtype: "BYTES", shape: [1] });
  }
  return { inputs, outputs };
}

/** The frames of a row. */
interface Frames {
  readonly logProbs: Float32Array;
  readonly ids: Int32Array;
  readonly count: number;
  readonly width: number;
}

/**
 * Searches the texts of rows, and has another model score them again. The state of a stream has the texts that the search
 * follows.
 */
export class CtcDecoder {
  constructor(private readonly plan: CtcPlan) {}

  /**
   * Texts of a request, those of a row best first; and the states of the searches, if it is part of a stream.
   *
   * @param isLast true unless more frames follow in a stream
   * @throws TritonError INVALID_ARG for lengths beyond the frames, and for units that the vocabulary lacks
   */
  search(
    inputs: Tensors,
    isLast: boolean,
  ): {
    readonly texts: readonly (readonly Hypothesis[])[];
    readonly states: readonly Uint8Array[];
  } {
    const { method, stream } = this.plan;
    const rows = this.#rowsOf(inputs);
    if (method === "greedy" && !stream) {
      const texts = rows.map(({ logProbs, ids, count, width }) => [
        greedySearch(logProbs, ids, count, width),
      ]);
      return { texts, states: [] };
    }
    const states: Uint8Array[] = [];
    const past = inputs.get(PAST)?.elements as readonly Uint8Array[] | undefined;
    const texts = rows.map(({ logProbs, ids, count, width }, row) => {
      const search = new PrefixBeamSearch(this.plan, past?.[row]);
      search.advance(logProbs, ids, count, width);
      if (stream) states.push(search.save());
      return search.results(isLast);
    });
    return { texts, states };
  }

  #rowsOf(inputs: Tensors): readonly Frames[] {
    const logProbs = inputs.get(LOG_PROBS)!;
    const ids = inputs.get(IDS)!;
    if (logProbs.shape.length !== 3 || String(logProbs.shape) !== String(ids.shape)) {
      const shapes = `[${logProbs.shape}] and [${ids.shape}]`;
      throw errorFor(
        "INVALID_INPUT",
        `inputs '${LOG_PROBS}' and '${IDS}': expected the same shape, got ${shapes}`,
      );
    }
    const [rows, frames, width] = logProbs.shape as unknown as [number, number, number];
    const numbers = logProbs.elements as Float32Array;
    const units = this.#unitsOf(ids.elements as BigInt64Array);
    return Array.from({ length: rows }, (_, row) => {
      const count = Number(inputs.get(LENGTHS)!.elements[row]);
      if (count < 0 || count > frames) {
        const text = `expected 0 to ${frames} frames, as input '${LOG_PROBS}' has, got ${count}`;
        throw errorFor("INVALID_INPUT", `input '${LENGTHS}': ${text}`);
      }
      const [start, end] = [row * frames * width, (row + 1) * frames * width];
      return { logProbs: numbers.subarray(start, end), ids: units.subarray(start, end), count, width };
    });
  }

  /** Converts ids without a bigint for each. */
  #unitsOf(ids: BigInt64Array): Int32Array {
    const words = new Int32Array(ids.buffer, ids.byteOffset, 2 * ids.length);
    const units = new Int32Array(ids.length);
    const size = this.plan.vocabulary.length;
    for (let i = 0; i < units.length; i++) {
      const unit = words[2 * i]!;
      if (words[2 * i + 1] !== 0 || unit < 0 || unit >= size) {
        const expected = `expected units of the vocabulary, 0 to ${size - 1}, got ${ids[i]}`;
        throw errorFor("INVALID_INPUT", `input '${IDS}': ${expected}`);
      }
      units[i] = unit;
    }
    return units;
  }

  /**
   * Index of the best text of each row, as the model that scores again finds it.
   *
   * @param requests the requests with their rows, in the order of the texts
   */
  async rescore(
    texts: readonly (readonly Hypothesis[])[],
    requests: readonly Tensors[],
    models: ModelCaller,
  ): Promise<readonly number[]> {
    const { rescorer, beam, vocabulary } = this.plan;
    const longest = Math.max(0, ...texts.flat().map(({ units }) => units.length));
    if (rescorer === undefined || texts.length === 0 || longest > MOST_RESCORED) return texts.map(() => 0);
    const ends = vocabulary.indexOf("<sos/eos>");
    const rows = texts.length;
    const frames = Math.max(...requests.map((inputs) => inputs.get(ENCODED)!.shape[1]!));
    const features = requests[0]!.get(ENCODED)!.shape[2]!;
    const encoded = new Float32Array(rows * frames * features);
    const encodedLengths = new Int32Array(rows);
    let first = 0;
    for (const inputs of requests) {
      const one = inputs.get(ENCODED)!;
      const size = one.shape[1]! * features;
      const values = one.elements as Float32Array;
      for (let row = 0; row < one.shape[0]!; row++, first++) {
        encoded.set(values.subarray(row * size, (row + 1) * size), first * frames * features);
        encodedLengths[first] = Number(inputs.get(LENGTHS)!.elements[row]);
      }
    }
    const units = new BigInt64Array(rows * beam * (longest + 2)).fill(BigInt(ends));
    const lengths = new Int32Array(rows * beam).fill(1);
    const scores = new Float32Array(rows * beam).fill(Number.NEGATIVE_INFINITY);
    for (const [row, hypotheses] of texts.entries()) {
      for (const [i, one] of hypotheses.entries()) {
        const place = row * beam + i;
        units.set(one.units.map(BigInt), place * (longest + 2) + 1);
        lengths[place] = one.units.length + 1;
        scores[place] = one.score;
      }
    }
    const outputs = await models.infer<Record<string, { readonly data: BigInt64Array }>>(rescorer, {
      [ENCODED]: ndArrayOf(encoded, [rows, frames, features], "FP32", "input"),
      [LENGTHS]: ndArrayOf(encodedLengths, [rows, 1], "INT32", "input"),
      hyps_pad_sos_eos: ndArrayOf(units, [rows, beam, longest + 2], "INT64", "input"),
      hyps_lens_sos: ndArrayOf(lengths, [rows, beam], "INT32", "input"),
      ctc_score: ndArrayOf(scores, [rows, beam], "FP32", "input"),
    });
    return Array.from(outputs.best_index!.data, Number);
  }

  /** The outputs of a request. @param chosen the text of each row */
  answer(chosen: readonly Hypothesis[], states: readonly Uint8Array[]): ExecutionResult {
    const { outputName, words, stream } = this.plan;
    const rows = chosen.length;
    const strings = (values: readonly string[]) => {
      const bytes = values.map((value) => Buffer.from(value));
      return Tensor.fromElements("BYTES", [rows, 1], bytes);
    };
    const outputs = new Map([[outputName, strings(chosen.map(({ units }) => this.#textOf(units)))]]);
    if (words) outputs.set(WORDS, strings(chosen.map((one) => JSON.stringify(this.#wordsOf(one)))));
    if (stream) outputs.set(PRESENT, Tensor.fromElements("BYTES", [rows, 1], [...states]));
    return outputs;
  }

  #textOf(units: readonly number[]): string {
    return units
      .map((unit) => this.plan.vocabulary[unit])
      .join("")
      .replaceAll("▁", " ")
      .trim();
  }

  /** Words with the seconds in which their first and their last unit were heard. */
  #wordsOf({ units, frames }: Hypothesis): readonly { word: string; start: number; end: number }[] {
    const { vocabulary, frameSeconds } = this.plan;
    const seconds = (frame: number) => Math.round(frame * frameSeconds * 1000) / 1000;
    const made: { word: string; start: number; end: number }[] = [];
    for (const [i, unit] of units.entries()) {
      const piece = vocabulary[unit]!;
      const end = seconds(frames[i]! + 1);
      if (made.length === 0 || piece.startsWith("▁")) {
        made.push({ word: piece.replace("▁", ""), start: seconds(frames[i]!), end });
        continue;
      }
      const last = made.at(-1)!;
      last.word += piece;
      last.end = end;
    }
    return made;
  }
}

/** Entry of worker threads that decode. */
export async function load(data: unknown): Promise<WorkerModel> {
  const plan = data as CtcPlan;
  const decoder = new CtcDecoder(plan);
  return {
    ownsOutputs: true,
    callsModels: plan.rescorer !== undefined,
    execute: async ({ inputs, rows, requests, models }: WorkerBatch) => {
      const parts = splitOutputs(inputs, rows);
      const isLast = (i: number) => !plan.stream || requests[i]?.sequenceEnd === true;
      const found = parts.map((own, i) => {
        try {
          return requests[i]?.signal.aborted ? undefined : decoder.search(own, isLast(i));
        } catch (error) {
          return TritonError.from(error);
        }
      });
      const good = found.flatMap((one, i) =>
        one === undefined || TritonError.is(one) ? [] : [{ ...one, inputs: parts[i]! }],
      );
      const texts = good.flatMap((one) => one.texts);
      const best = await decoder.rescore(
        texts,
        good.map((one) => one.inputs),
        models!,
      );
      let first = 0;
      const separate = found.map((one): ExecutionResult => {
        if (one === undefined || TritonError.is(one)) return one ?? new Map();
        const chosen = one.texts.map((hypotheses) => hypotheses[best[first++]!]!);
        return decoder.answer(chosen, one.states);
      });
      return { separate };
    },
  };
}
