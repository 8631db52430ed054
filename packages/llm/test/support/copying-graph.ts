import type { OnnxSession } from "@tritonjs/backends/onnxruntime";
import { Tensor } from "@tritonjs/protocol";
import type { DecoderGraph } from "../../src/decoder/forward-pass.js";
import { GenerationEngine, KvBudget, type PassPadding } from "../../src/decoder/generation-engine.js";
import { RunningText } from "../../src/decoder/running-text.js";
import type { SamplingParameters } from "../../src/sampling/sampling-parameters.js";
import { TextResponses } from "../../src/text-answer.js";
import type { TextTokenizer } from "../../src/text-tokenizer.js";

const VOCABULARY = 60;

/**
 * A decoder without weights. Its keys are the tokens themselves, so a wrong column of keys gives other texts. The most
 * likely token is the one that followed the last two tokens before; else it depends on all of them.
 */
class CopyingGraph {
  runs = 0;
  /** New tokens of all rows, padding included. */
  columns = 0;

  /**
   * @param isLeft true for an operator that derives the place of each token from the marks of its row
   * @param writesInPlace true if it appends to keys where they are
   * @param cost milliseconds of a run, by its new tokens and the columns of its past
   */
  constructor(
    private readonly isLeft: boolean,
    readonly writesInPlace: boolean,
    private readonly cost: (tokens: number, past: number) => number,
  ) {}

  /** Time of its runs so far, in milliseconds. */
  clock = 0;

  async runTensors(
    inputs: ReadonlyMap<string, Tensor>,
    _names?: readonly string[],
    into?: ReadonlyMap<string, Tensor>,
  ): Promise<Map<string, Tensor>> {
    this.runs++;
    const ids = inputs.get("input_ids")!;
    const mask = inputs.get("attention_mask")!;
    const past = inputs.get("past_key_values.0.key")!;
    const [rows, count] = ids.shape as [number, number];
    const width = past.shape[2]!;
    this.columns += rows * count;
    const total = mask.shape[1]!;
    this.clock += this.cost(rows * count, total - count);
    if (this.isLeft && rows > 1 && count > 1 && total > count)
      throw new Error("one new token for each row with a past");
    const written =
      into?.get("present.0.key") ??
      Tensor.fromElements("FP32", [rows, 1, total, 1], new Float32Array(rows * total));
    const keys = written.elements as Float32Array;
    const stride = written.shape[2]!;
    const logits = new Float32Array(rows * count * VOCABULARY);
    for (let row = 0; row < rows; row++) {
      const seen = (column: number) => Number(mask.elements[row * total + column]) === 1;
      const before = (past.elements as Float32Array).subarray(row * width, (row + 1) * width);
      const fresh = Array.from({ length: count }, (_, i) => Number(ids.elements[row * count + i]));
      const marks = Array.from({ length: total }, (_, column) => seen(column)).filter(Boolean).length;
      let tokens: number[];
      if (this.isLeft) {
        // As the operator does it: the number of marks says where the new tokens go.
        const start = total === count ? 0 : marks - count;
        tokens = [...before.subarray(0, start)];
        keys.set(before.subarray(0, start), row * stride);
        keys.set(fresh, row * stride + start);
      } else {
        tokens = [...before].filter((_, column) => seen(column));
        keys.set(before, row * stride);
        keys.set(fresh, row * stride + width);
      }
      for (const [i, token] of fresh.entries()) {
        tokens.push(token);
        logits.set(scoresAfter(tokens), (row * count + i) * VOCABULARY);
      }
    }
    return new Map([
      ["logits", Tensor.fromElements("FP32", [rows, count, VOCABULARY], logits)],
      ["present.0.key", written],
    ]);
  }
}

function scoresAfter(tokens: readonly number[]): Float32Array {
  let state = tokens.reduce((sum, token) => (Math.imul(sum, 31) + token + 1) >>> 0, 7);
  const scores = new Float32Array(VOCABULARY);
  for (let id = 0; id < VOCABULARY; id++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    scores[id] = state / 2 ** 32;
  }
  for (let end = tokens.length - 1; end >= 2; end--) {
    if (tokens[end - 1] !== tokens.at(-1) || tokens[end - 2] !== tokens.at(-2)) continue;
    scores[tokens[end]!] = 4;
    break;
  }
  return scores;
}

/** A text to generate. */
export interface CopyWish {
  readonly prompt: readonly number[];
  readonly maxTokens: number;
  readonly sampling?: SamplingParameters;
  /** Tokens of the first text after which this one arrives. @default it is there from the beginning */
  readonly after?: number;
}

/** Generates texts together on a {@link CopyingGraph}. Returns their tokens, and what they cost. */
export async function copyTexts(
  wishes: readonly CopyWish[],
  lookupTokens: number,
  {
    pads = "all" as PassPadding,
    inPlace = false,
    prefillTokens = 256 as number | "measured",
    contextLength = 512,
    kvTokens = 100_000,
    cost = (_tokens: number, _past: number): number => 1,
  } = {},
) {
  const isLeft = pads === "prompts";
  const graph = new CopyingGraph(isLeft, inPlace, cost);
  const layers = [{ input: "past_key_values.0.key", output: "present.0.key", heads: 1, size: 1 }];
  const description: DecoderGraph = {
    kv: { layers, datatype: "FP32", isLeft },
    hasPositions: true,
    hasCacheBranch: false,
    keepsLastLogits: false,
    integers: "INT64",
  };
  const given = prefillTokens === "measured" ? undefined : prefillTokens;
  const limits = { contextLength, maxRunning: 32, prefillTokens: given, cachedTokens: 1000, pads };
  const engine = new GenerationEngine({
    session: graph as unknown as OnnxSession,
    graph: description,
    budget: new KvBudget(kvTokens),
    limits,
    sendReport: () => {},
    now: () => graph.clock,
  });
  const faults: Error[] = [];
  const times: number[][] = [];
  const late = new Map<number, RunningText>();
  const texts = wishes.map(({ prompt, maxTokens, sampling = {}, after = 0 }, i) => {
    const stream = {
      isOpen: () => true,
      writable: () => undefined,
      send() {},
      sendError: (_: number, error: Error) => void faults.push(error),
    };
    const responses = new TextResponses(
      { stream: true, prefix: "", wanted: {} } as never,
      stream as never,
      TOKENIZER,
      prompt.length,
    );
    const text = new RunningText({
      prompt,
      maxTokens,
      sampling,
      endTokens: [],
      shown: "all",
      tokenizer: TOKENIZER,
      responses,
      lookupTokens,
    });
    const own: number[] = [];
    times.push(own);
    responses.addToken = () => {
      own.push(graph.clock);
      const due = i === 0 ? late.get(own.length) : undefined;
      if (due !== undefined) engine.add(due, new AbortController().signal);
    };
    if (after === 0) engine.add(text, new AbortController().signal);
    else late.set(after, text);
    return text;
  });
  await engine.idle();
  if (faults.length > 0) throw faults[0];
  return {
    texts: texts.map(({ tokens, promptLength }) => tokens.slice(promptLength)),
    /** Milliseconds at which the tokens of each text came. */
    times,
    runs: graph.runs,
    columns: graph.columns,
  };
}

/** Only the numbers of the tokens matter. */
const TOKENIZER = {
  spelling: "byte_fallback",
  tokens: [],
  isShown: () => true,
  addedText: () => undefined,
  isSpecial: () => false,
  bytesOf: () => new Uint8Array(),
  textOf: () => "",
  encode: () => [],
} as unknown as TextTokenizer;
