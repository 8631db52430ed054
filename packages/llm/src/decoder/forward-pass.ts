import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { OnnxSession } from "@tritonjs/backends/onnxruntime";
import {
  type DataType,
  type DescribedTensor,
  errorFor,
  float16ToFloat32,
  Tensor,
  type TritonError,
} from "@tritonjs/protocol";
import type { DecoderConfig } from "./decoder-settings.js";

/** One text in a pass: its keys and values so far, and the tokens that follow. */
export interface PassRow {
  readonly past: KvSlice | undefined;
  /** At least one token. */
  readonly tokens: readonly number[];
  /** Images of the text, which are at places of its tokens. */
  readonly images?: PromptImages | undefined;
  /** Tokens that it is known to get, for which memory is taken at once. @default those of this pass */
  readonly room?: number | undefined;
}

/** Inputs of a decoder for tokens: the graph that computes them, and what takes the place of some of them. */
export interface TokenEmbedding {
  /** Inputs `[rows, columns, size]` for tokens `[rows, columns]`. The array is the caller's. */
  embed(tokens: Tensor): Promise<Tensor>;
}

/** Encoded images of a prompt. */
export interface PromptImages {
  /**
   * Writes the inputs for images in place of those of tokens.
   *
   * @param first place of the first token in the prompt
   * @param target inputs of `count` tokens from `offset` on
   */
  write(first: number, count: number, target: Float32Array | Uint16Array, offset: number): void;
}

/** Scores that a pass computes: none, those after the last token of each text, or those after all new tokens. */
export type WantedScores = "none" | "last" | "all";

export interface PassResult {
  /** Its keys and values, those of the new tokens included. */
  readonly past: KvSlice;
  /**
   * Scores of all tokens after the last one. The array is the caller's until the next pass. Undefined if they were not
   * asked for.
   */
  readonly scores: Float32Array | undefined;
  /** Scores after the new token of an index, for a pass that was asked for all of them. Until the next pass, too. */
  scoresAfter(index: number): Float32Array;
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
 *
 * An operator that takes the length of each text from the sum of its mask wants all of them to begin in the first
 * column. It then puts the new tokens behind the past itself:
 *
 * ```
 *          past, to the left    new tokens, as many in each row unless there is no past
 * row 0    a a a . . .          a
 * row 1    b b b b b b          b
 * ```
 */
export async function forwardPass(
  session: OnnxSession,
  graph: DecoderGraph,
  rows: readonly PassRow[],
  wanted: WantedScores,
): Promise<PassResult[]> {
  const { kv } = graph;
  const columns = Math.max(...rows.map(({ tokens }) => tokens.length));
  const kept = keptColumns(graph, rows, columns, wanted);
  const pasts = rows.map(({ past }) => past);
  const length = Math.max(...pasts.map((past) => past?.length ?? 0));
  const isInPlace = kv.isLeft === true && session.writesInPlace;
  const block = isInPlace
    ? blockWithRoom(pasts, kv, length + columns, Math.max(...rows.map(({ room = 0 }) => room)))
    : alignRows(pasts, kv);
  const inputs = passInputs(graph, block, length + columns, rows, columns, kept);
  if (graph.embedding !== undefined) await embedTokens(graph.embedding, inputs, rows, columns);
  const names = kv.layers.map(({ output }) => output);
  const into = new Map(isInPlace ? names.map((name, i) => [name, block.tensors[i]!]) : []);
  const { lastScores } = graph;
  if (isInPlace && wanted !== "none" && kept === 1 && lastScores?.shape[0] === rows.length)
    into.set("logits", lastScores);
  const outputs = await session.runTensors(inputs, wanted === "none" ? names : ["logits", ...names], into);
  const next: KvBlock = isInPlace
    ? block
    : { tensors: names.map((name) => outputs.get(name)!), rows: rows.length, width: length + columns };
  // What the run has read is in what it returned. Prefixes that are kept may still use a block of their own.
  if (next !== block && !block.isKept) free(block);
  const logits = outputs.get("logits");
  if (isInPlace && logits !== undefined && kept === 1) graph.lastScores = logits;
  return rows.map(({ past, tokens }, row) => {
    const own = past?.length ?? 0;
    return {
      past: { block: next, row, start: kv.isLeft ? 0 : length - own, length: own + tokens.length },
      scores: logits === undefined ? undefined : scoresOf(logits, row, tokens.length - 1, columns),
      scoresAfter: (index) => scoresOf(logits!, row, index, columns),
    };
  });
}

function passInputs(
  graph: DecoderGraph,
  { tensors }: KvBlock,
  total: number,
  rows: readonly PassRow[],
  columns: number,
  kept: number,
): Map<string, Tensor> {
  const count = rows.length;
  const width = total - columns;
  const ids = new BigInt64Array(count * columns);
  const positions = new BigInt64Array(count * columns);
  const mask = new BigInt64Array(count * total);
  for (const [row, { past, tokens }] of rows.entries()) {
    const length = past?.length ?? 0;
    for (let i = 0; i < tokens.length; i++) {
      // Images have negative numbers.
      ids[row * columns + i] = BigInt(Math.max(0, tokens[i]!));
      positions[row * columns + i] = BigInt(length + i);
    }
    const first = row * total + (graph.kv.isLeft ? 0 : width - length);
    mask.fill(1n, first, first + length + tokens.length);
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
    inputs.set("num_logits_to_keep", Tensor.fromElements("INT64", [], BigInt64Array.of(BigInt(kept))));
  }
  for (const [i, { input }] of graph.kv.layers.entries()) inputs.set(input, tensors[i]!);
  return inputs;
}

/** Columns of a pass that get scores. */
function keptColumns(
  { keepsLastLogits }: DecoderGraph,
  rows: readonly PassRow[],
  columns: number,
  wanted: WantedScores,
): number {
  // The last token of a shorter row is not in the last column.
  const endsTogether = rows.every(({ tokens }) => tokens.length === columns);
  return keepsLastLogits && endsTogether && wanted !== "all" ? 1 : columns;
}

/** Turns the tokens of a pass into the inputs of a decoder that takes none. */
async function embedTokens(
  embedding: TokenEmbedding,
  inputs: Map<string, Tensor>,
  rows: readonly PassRow[],
  columns: number,
): Promise<void> {
  const embedded = await embedding.embed(inputs.get("input_ids")!);
  const size = embedded.shape[2]!;
  for (const [row, { past, tokens, images }] of rows.entries()) {
    const target = embedded.elements as Float32Array | Uint16Array;
    images?.write(past?.length ?? 0, tokens.length, target, row * columns * size);
  }
  inputs.delete("input_ids");
  inputs.set("inputs_embeds", embedded);
}

function integers(graph: DecoderGraph, shape: readonly number[], values: BigInt64Array<ArrayBuffer>): Tensor {
  if (graph.integers === "INT64") return Tensor.fromElements("INT64", shape, values);
  return Tensor.fromElements("INT32", shape, Int32Array.from(values, Number));
}

/** Scores after the token in a column. A graph that keeps the last logits has those of the last column alone. */
function scoresOf(logits: Tensor, row: number, token: number, columns: number): Float32Array {
  const [, kept, size] = logits.shape as [number, number, number];
  const column = kept === columns ? token : kept - 1;
  const from = (row * kept + column) * size;
  if (logits.datatype === "FP16")
    return float16ToFloat32((logits.elements as Uint16Array).subarray(from, from + size));
  return (logits.elements as Float32Array).subarray(from, from + size);
}

/** Inputs and outputs of a decoder's graph, as Optimum names them. */
export interface DecoderGraph {
  readonly kv: KvLayout;
  readonly hasPositions: boolean;
  /** True for a graph that has a branch without past keys and values, which the first pass takes. */
  readonly hasCacheBranch: boolean;
  /** True if the graph computes the logits of the last columns alone, given their number. */
  readonly keepsLastLogits: boolean;
  readonly integers: "INT64" | "INT32";
  /** Set for a decoder that takes inputs of another graph in place of tokens. */
  readonly embedding?: TokenEmbedding | undefined;
  /** Scores of the last pass with one column, whose memory the next one writes over if it runs in place. */
  lastScores?: Tensor | undefined;
}

const PAST_INPUT = /^past_key_values\.(\d+)\.(key|value)$/;

const KNOWN_INPUTS = new Set([
  "input_ids",
  "inputs_embeds",
  "attention_mask",
  "position_ids",
  "use_cache_branch",
  "num_logits_to_keep",
]);

/**
 * Reads how a session wants its tokens, keys and values.
 *
 * @param isLeft true if texts begin in the first column of their rows
 * @throws TritonError INVALID_ARG if it is not a decoder with past keys and values
 */
export function readDecoderGraph(
  session: OnnxSession,
  file: string,
  config: DecoderConfig,
  isLeft = false,
  embedding?: TokenEmbedding,
): DecoderGraph {
  const inputs = new Map(session.inputs.map((input) => [input.name, input]));
  const outputs = new Map(session.outputs.map((output) => [output.name, output]));
  const fail = (expected: string, got: string) => notADecoder(file, expected, got);
  const past = session.inputs.filter(({ name }) => PAST_INPUT.test(name));
  const unknown = session.inputs.find(({ name }) => !KNOWN_INPUTS.has(name) && !PAST_INPUT.test(name));
  if (unknown !== undefined) throw fail("the inputs of a text decoder", `the input '${unknown.name}'`);
  const takesTokens = inputs.has("input_ids");
  if (!takesTokens && inputs.has("inputs_embeds") && embedding === undefined) {
    throw fail("the graph 'embed_tokens' beside it, because it has the input 'inputs_embeds'", "none");
  }
  for (const name of [embedding === undefined ? "input_ids" : "inputs_embeds", "attention_mask"]) {
    if (!inputs.has(name)) throw fail(`the input '${name}'`, listedNames(inputs.keys()));
  }
  const positions = inputs.get("position_ids");
  if (positions !== undefined && positions.shape.length !== 2) {
    throw fail(
      "'position_ids' with 2 dimensions",
      `${positions.shape.length}: positions in three dimensions, as Qwen2-VL has them, are not supported`,
    );
  }
  if (past.length === 0) {
    throw fail(
      "inputs 'past_key_values.0.key' and so on: export it with Optimum's task text-generation-with-past",
      listedNames(inputs.keys()),
    );
  }
  if (!outputs.has("logits")) throw fail("the output 'logits'", listedNames(outputs.keys()));
  const layers = past.map((input) => layerOf(input, outputs, config, fail));
  const datatype = past[0]!.dtype;
  if (datatype !== "FP32" && datatype !== "FP16") throw fail("keys and values of FP32 or FP16", datatype);
  const named = takesTokens ? "input_ids" : "attention_mask";
  const integers = inputs.get(named)!.dtype;
  if (integers !== "INT64" && integers !== "INT32") throw fail(`'${named}' of INT64 or INT32`, integers);
  return {
    kv: { layers, datatype, isLeft },
    hasPositions: inputs.has("position_ids"),
    hasCacheBranch: inputs.has("use_cache_branch"),
    keepsLastLogits: inputs.has("num_logits_to_keep"),
    integers,
    embedding,
  };
}

function layerOf(
  { name, shape }: DescribedTensor,
  outputs: ReadonlyMap<string, DescribedTensor>,
  config: DecoderConfig,
  fail: (expected: string, got: string) => TritonError,
): KvLayer {
  const [, index, kind] = PAST_INPUT.exec(name)!;
  const output = `present.${index}.${kind}`;
  if (!outputs.has(output)) throw fail(`the output '${output}'`, listedNames(outputs.keys()));
  if (shape.length !== 4) throw fail(`'${name}' with 4 dimensions`, `${shape.length}`);
  const heads = shape[1]! > 0 ? shape[1]! : config.kvHeads;
  const size = shape[3]! > 0 ? shape[3]! : config.headSize;
  if (heads === undefined || size === undefined || !Number.isInteger(size)) {
    throw fail(
      "'num_attention_heads' and 'hidden_size' in config.json, because the graph leaves the sizes open",
      "none",
    );
  }
  return { input: name, output, heads, size };
}

function notADecoder(file: string, expected: string, got: string): TritonError {
  return errorFor("INVALID_MODEL", `cannot use ${file} as a decoder: expected ${expected}, got ${got}`);
}

function listedNames(names: Iterable<string>): string {
  const all = [...names];
  return all.length > 8 ? `${all.slice(0, 8).join(", ")} and ${all.length - 8} more` : all.join(", ");
}

/** Keys or values of one layer: an input of the graph. */
interface KvLayer {
  readonly input: string;
  readonly output: string;
  readonly heads: number;
  readonly size: number;
}

/** How the keys and values of a model lie in its tensors. */
export interface KvLayout {
  readonly layers: readonly KvLayer[];
  readonly datatype: "FP32" | "FP16";
  /** True if texts begin in the first column of their rows. @default they end in the last one */
  readonly isLeft?: boolean;
}

/** Bytes that the keys and values of one token need. */
export function bytesPerToken({ layers, datatype }: KvLayout): number {
  const elements = layers.reduce((sum, { heads, size }) => sum + heads * size, 0);
  return elements * (datatype === "FP16" ? 2 : 4);
}

/**
 * Keys and values of several texts, as the graph takes and returns them: for each layer a tensor
 * `[rows, heads, width, size]`. Columns that are in use never change, so several texts may use parts of it.
 */
export interface KvBlock {
  readonly tensors: readonly Tensor[];
  readonly rows: number;
  readonly width: number;
  /** True if others may use it too, so that it outlives the next run of its texts. */
  isKept?: boolean;
}

/** The keys and values of one text: columns `start` to `start + length` of a row of a block. */
export interface KvSlice {
  readonly block: KvBlock;
  readonly row: number;
  readonly start: number;
  readonly length: number;
}

/**
 * Puts slices below each other, each at the end of its row that the layout says. The other columns are zero, and the
 * attention mask hides them.
 *
 * ```
 * row 0   . . . a a a      The next token of each text comes at the right, so the result of a step
 * row 1   b b b b b b      is the input of the next one without a copy, as long as the rows stay.
 * row 2   . c c c c c
 * ```
 *
 * Returns the block of the slices itself if they already lie like this.
 */
export function alignRows(slices: readonly (KvSlice | undefined)[], layout: KvLayout): KvBlock {
  const block = slices[0]?.block;
  const width = Math.max(...slices.map((slice) => slice?.length ?? 0));
  // Without free columns: an operator may count them as tokens of the context.
  if (block?.width === width && isWhole(slices, block, layout)) return block;
  return copied(slices, layout, width);
}

/** True if slices are all rows of a block, in its order. */
function isWhole(slices: readonly (KvSlice | undefined)[], block: KvBlock, { isLeft }: KvLayout): boolean {
  return (
    block.rows === slices.length &&
    slices.every((slice, row) => {
      if (slice?.block !== block || slice.row !== row) return false;
      return isLeft ? slice.start === 0 : slice.start + slice.length === block.width;
    })
  );
}

/** Fewest free columns of a new block: it is copied again only after that number of steps. */
const SPARE_COLUMNS = 64;

/** Free columns of a new block beside those in use, so that copies become rare as texts get longer. */
const SPARE_SHARE = 0.5;

/**
 * Puts slices below each other in a block to which the operator appends in place: it has free columns at the right, and
 * nobody else uses it. Returns the block of the slices itself if it is like this.
 *
 * @param width columns that the next pass uses
 * @param known columns that the texts will use at least
 */
function blockWithRoom(
  slices: readonly (KvSlice | undefined)[],
  layout: KvLayout,
  width: number,
  known: number,
): KvBlock {
  const block = slices[0]?.block;
  const isOwn = block !== undefined && !block.isKept && isWhole(slices, block, layout);
  if (isOwn && block.width >= width) return block;
  const used = Math.max(width, known);
  const larger = copied(slices, layout, used + Math.max(SPARE_COLUMNS, Math.ceil(SPARE_SHARE * used)));
  if (isOwn) free(block);
  return larger;
}

/** Copies slices to a block of a width. */
function copied(slices: readonly (KvSlice | undefined)[], layout: KvLayout, width: number): KvBlock {
  const tensors = layout.layers.map((layer, i) => {
    const { heads, size } = layer;
    const elements = newElements(layout.datatype, slices.length * heads * width * size);
    for (const [row, slice] of slices.entries()) {
      if (slice !== undefined)
        copyRow(slice, i, layer, elements, row, width, layout.isLeft ? 0 : width - slice.length);
    }
    return Tensor.fromElements(layout.datatype, [slices.length, heads, width, size], elements);
  });
  return { tensors, rows: slices.length, width };
}

/** Takes what is transferred to it and drops it, because nothing can come from it. */
let sink: MessagePort | undefined;

/** False once an engine's memory could not be freed. */
let mayFree = true;

/**
 * Frees the memory of a block at once. Else each step leaves megabytes for the garbage collector, which then runs every
 * few steps.
 */
function free({ tensors }: KvBlock): void {
  if (!mayFree) return;
  const buffers = tensors.map(({ elements }) => (elements as KvElements).buffer as ArrayBuffer);
  if (sink === undefined) {
    const { port1, port2 } = new MessageChannel();
    port2.close();
    sink = port1;
    sink.unref();
  }
  try {
    sink.postMessage(
      undefined,
      buffers.filter(({ byteLength }) => byteLength > 0),
    );
  } catch {
    // Memory of WebAssembly, for example, cannot be transferred.
    mayFree = false;
  }
}

/** Copies a slice to a block of its own, unless it already has nearly all of its block. */
export function detached(slice: KvSlice, layout: KvLayout): KvSlice {
  const { block, length } = slice;
  if (block.rows === 1 && block.width <= 1.25 * length) return slice;
  return { block: alignRows([slice], layout), row: 0, start: 0, length };
}

type KvElements = Float32Array | Uint16Array;

export function newElements(datatype: DataType, length: number): KvElements {
  return datatype === "FP16" ? new Uint16Array(length) : new Float32Array(length);
}

function copyRow(
  { block, row, start, length }: KvSlice,
  index: number,
  { heads, size }: KvLayer,
  target: KvElements,
  targetRow: number,
  targetWidth: number,
  targetColumn: number,
): void {
  const source = block.tensors[index]!.elements as KvElements;
  for (let head = 0; head < heads; head++) {
    const from = ((row * heads + head) * block.width + start) * size;
    const to = ((targetRow * heads + head) * targetWidth + targetColumn) * size;
    target.set(source.subarray(from, from + length * size), to);
  }
}

/** Shortest prefix to share, in tokens. Shorter ones take longer to find and to copy than to compute. */
const SHORTEST_PREFIX = 8;

/** Largest number of entries, because every prompt is compared with each of them. */
const MOST_PREFIXES = 64;

/** Share of a prompt that others may lack: to compute it takes about as long as a copy of all its keys and values. */
const LACKING_SHARE = 0.01;

/** A prompt with its keys and values. */
export interface CachedPrefix {
  readonly tokens: readonly number[];
  readonly past: KvSlice;
  /** Number of prompts that began with it. */
  uses: number;
}

/** Number of tokens that two prompts have in common at the beginning. */
export function commonLength(a: readonly number[], b: readonly number[]): number {
  const end = Math.min(a.length, b.length);
  let length = 0;
  while (length < end && a[length] === b[length]) length++;
  return length;
}

/** True if a prefix is long enough to be shared. */
export function isWorthSharing(length: number): boolean {
  return length >= SHORTEST_PREFIX;
}

/**
 * Keys and values of past prompts, for prompts that begin alike. The least recently used ones are evicted when the
 * space is needed.
 */
export class PrefixCache {
  /** The least recently used first. */
  #entries: CachedPrefix[] = [];
  /** Number of tokens that it holds. */
  tokens = 0;
  /** Number of prompts that began with a cached prefix. */
  hits = 0;

  /** @param maxTokens tokens that the cache holds at most; 0 for no cache */
  constructor(
    private readonly layout: KvLayout,
    private readonly maxTokens: number,
  ) {}

  /** What it holds, the least recently used first. */
  get entries(): readonly CachedPrefix[] {
    return this.#entries;
  }

  /** Keys and values of the beginning of a prompt, without its last token, whose scores are needed. */
  find(prompt: readonly number[]): KvSlice | undefined {
    let best: CachedPrefix | undefined;
    let length = 0;
    for (const entry of this.#entries) {
      const common = Math.min(commonLength(entry.tokens, prompt), prompt.length - 1);
      if (common <= length) continue;
      best = entry;
      length = common;
    }
    if (best === undefined || !isWorthSharing(length)) return undefined;
    this.#entries = [...this.#entries.filter((entry) => entry !== best), best];
    this.hits++;
    best.uses++;
    return { ...best.past, length };
  }

  /** Keeps the keys and values of a prompt, unless another prompt has all or nearly all of them. */
  add(prompt: readonly number[], past: KvSlice): void {
    if (!isWorthSharing(prompt.length) || prompt.length > this.maxTokens) return;
    const needed = prompt.length - Math.floor(LACKING_SHARE * prompt.length);
    if (this.#entries.some(({ tokens }) => commonLength(tokens, prompt) >= needed)) return;
    for (const entry of this.#entries) {
      if (commonLength(entry.tokens, prompt) === entry.tokens.length) this.#remove(entry);
    }
    while (this.tokens + prompt.length > this.maxTokens || this.#entries.length >= MOST_PREFIXES)
      this.#evict();
    const tokens = [...prompt];
    const own = detached({ ...past, length: tokens.length }, this.layout);
    own.block.isKept = true;
    this.#entries.push({ tokens, past: own, uses: 0 });
    this.tokens += tokens.length;
  }

  /** Makes room: holds at most this number of tokens afterwards. */
  shrinkTo(tokens: number): void {
    while (this.tokens > tokens) this.#evict();
  }

  #evict(): void {
    const [oldest] = this.#entries;
    if (oldest !== undefined) this.#remove(oldest);
  }

  #remove(entry: CachedPrefix): void {
    this.#entries = this.#entries.filter((one) => one !== entry);
    this.tokens -= entry.tokens.length;
  }
}
