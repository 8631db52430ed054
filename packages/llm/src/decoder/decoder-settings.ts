import type { OnnxRuntimeOptions } from "@tritonjs/backends/onnxruntime";
import {
  type DecoderDtype,
  definedMembers,
  errorFor,
  GRAPH_DTYPES,
  type TritonError,
} from "@tritonjs/protocol";
import type { SamplingParameters } from "../sampling/sampling-parameters.js";
import type { TextTokenizer } from "../text-tokenizer.js";
import type { ModelDirectory, ModelFileObject } from "./model-files.js";

/** Limits of a decoder. */
interface DecoderLimits {
  /**
   * Largest number of requests that generate text together in an instance. Others wait in the model's queue.
   *
   * @default 32
   */
  readonly maxRunningRequests?: number | undefined;
  /**
   * Bytes for keys and values in an instance. A step has them twice, before and after it, and both count.
   * @default enough for `maxRunningRequests` whole contexts, but at most a quarter of the machine's memory
   */
  readonly kvCacheBytes?: number | undefined;
  /**
   * Largest number of prompt tokens in a step, so that running texts go on meanwhile.
   * @default 256 while no text is running; else as many as take about as long as the step of the running texts
   */
  readonly prefillTokens?: number | undefined;
  /** Keeps keys and values of prompts for later prompts that begin alike, while there is room. @default true */
  readonly prefixCache?: boolean | undefined;
  /**
   * Largest size of the kept keys and values, which is never more than half of `kvCacheBytes`.
   * @default 64 MiB, or one whole context if that is more
   */
  readonly prefixCacheBytes?: number | undefined;
  /**
   * Directory in which keys and values of prompts are kept, so that they outlive the process. Processes may share it,
   * also for different models. Only its owner can read it. A relative path belongs to the current directory.
   */
  readonly prefixDirectory?: string | URL | undefined;
  /** Largest size of `prefixDirectory`. The least recently used prefixes are deleted first. @default 1 GiB */
  readonly prefixDirectoryBytes?: number | undefined;
  /**
   * Largest number of tokens that a step guesses for each text, from what followed its last tokens earlier in the prompt
   * or the text; 0 for none. Texts that copy take fewer steps, and are what they would be. @default 0
   */
  readonly promptLookupTokens?: number | undefined;
  /**
   * Runs each text by itself and without the prefix cache, so that it never depends on the texts beside it. It is for
   * graphs that quantise by the range of a whole run, and costs the speed of batches. @default false
   */
  readonly batchInvariant?: boolean | undefined;
  /**
   * Treatment of a JSON schema with keywords that a grammar cannot hold, such as `multipleOf`: the request is refused
   * with their names, or a warning has them and texts may break them. @default "refuse"
   */
  readonly unheldKeywords?: "refuse" | "warn" | undefined;
  /** Largest number of images in a request, for a model that takes images. @default 16 */
  readonly maxImages?: number | undefined;
  /** Tokens of a prompt and its text together. @default `max_position_embeddings` of `config.json` */
  readonly contextLength?: number | undefined;
}

/** Options of {@link textGeneration}: the model, its limits, and those of its ONNX session. */
export interface TextGenerationOptions extends DecoderLimits, Omit<OnnxRuntimeOptions, "model"> {
  /** Directory of the model, as Hugging Face Optimum exports it. */
  readonly directory: string | URL;
  /** Path of the graph inside the directory, such as `onnx/model_q4.onnx`; found by `dtype` unless given. */
  readonly file?: string | undefined;
  /**
   * Precision of the graph, as in transformers.js: `q4` loads `model_q4.onnx` or `onnx/model_q4.onnx`.
   * @default on a CPU the first of fp32, q4, q8, int8, uint8, bnb4, fp16 and q4f16 that is there; on a GPU fp16 first
   */
  readonly dtype?: DecoderDtype | undefined;
}

/** Options that cross to the worker. */
export type DecoderData = Omit<TextGenerationOptions, "directory" | "onWarning" | "prefixDirectory"> & {
  readonly directory: string;
  readonly prefixDirectory?: string | undefined;
};

/** Defaults of {@link DecoderLimits}. */
export const DECODER_DEFAULTS = {
  /** A step costs little more for many texts than for one. Above this, the time of a step grows with each text. */
  maxRunningRequests: 32,
  prefixCache: true,
  /** Some thousands of tokens of a small model. */
  prefixCacheBytes: 64 * 1024 * 1024,
  /** Each is encoded on the thread of the running texts, and takes hundreds of tokens. */
  maxImages: 16,
};

/** Longest guess. Beyond it, wrong tokens cost more than right ones save. */
const MOST_LOOKUP = 64;

const COUNTS = [
  "maxRunningRequests",
  "kvCacheBytes",
  "prefixCacheBytes",
  "prefixDirectoryBytes",
  "prefillTokens",
  "contextLength",
  "maxImages",
] as const;

/** @throws TritonError INVALID_ARG that lists every invalid option */
export function checkDecoderOptions(options: TextGenerationOptions): void {
  const problems: string[] = [];
  for (const name of COUNTS) {
    const value: unknown = options[name];
    if (value === undefined || (Number.isSafeInteger(value) && (value as number) > 0)) continue;
    problems.push(`${name}: expected an integer of at least 1, got ${String(value)}`);
  }
  const lookup: unknown = options.promptLookupTokens;
  if (
    lookup !== undefined &&
    !(Number.isSafeInteger(lookup) && (lookup as number) >= 0 && (lookup as number) <= MOST_LOOKUP)
  ) {
    problems.push(`promptLookupTokens: expected an integer from 0 to ${MOST_LOOKUP}, got ${String(lookup)}`);
  }
  if (options.batchInvariant === true && Number(lookup ?? 0) > 0) {
    problems.push(
      "promptLookupTokens: expected 0 with batchInvariant, because guessed tokens share the run of a text",
    );
  }
  for (const name of ["prefixCache", "batchInvariant"] as const) {
    const value: unknown = options[name];
    if (value === undefined || typeof value === "boolean") continue;
    problems.push(`${name}: expected true or false, got ${String(value)}`);
  }
  const { dtype, file, unheldKeywords, prefixDirectory } = options;
  if (prefixDirectory !== undefined) problems.push(...prefixDirectoryProblems(options));
  if (unheldKeywords !== undefined && unheldKeywords !== "refuse" && unheldKeywords !== "warn") {
    problems.push(`unheldKeywords: expected refuse or warn, got ${String(unheldKeywords)}`);
  }
  if (dtype !== undefined && !GRAPH_DTYPES.includes(dtype)) {
    problems.push(`dtype: expected one of ${GRAPH_DTYPES.join(", ")}, got ${String(dtype)}`);
  }
  if (file !== undefined && (typeof file !== "string" || file === "")) {
    problems.push(`file: expected the path of a graph, got ${JSON.stringify(file)}`);
  }
  if (problems.length === 0) return;
  throw errorFor("INVALID_OPTION", `textGeneration: ${problems.join("; ")}`);
}

function prefixDirectoryProblems({
  prefixDirectory: path,
  prefixCache,
  batchInvariant,
}: TextGenerationOptions): string[] {
  const problems: string[] = [];
  if (!(path instanceof URL) && (typeof path !== "string" || path === "")) {
    problems.push(`prefixDirectory: expected the path of a directory, got ${JSON.stringify(path)}`);
  }
  if (prefixCache === false) {
    problems.push("prefixDirectory: expected prefixCache not to be false, because prefixes are kept from it");
  }
  if (batchInvariant === true) {
    problems.push("prefixDirectory: expected no batchInvariant, because it computes each prompt as a whole");
  }
  return problems;
}

/** Settings for the generation of text in the files of a model. */
export interface DecoderConfig {
  /** Tokens of a prompt and its text together; undefined if the files do not say. */
  readonly contextLength: number | undefined;
  /** Heads and size of the keys, where the graph leaves them open. */
  readonly kvHeads: number | undefined;
  readonly headSize: number | undefined;
  readonly endTokens: readonly number[];
  /** Sampling parameters of `generation_config.json`, for requests that do not set them. */
  readonly defaults: SamplingParameters;
}

/** Names of the context's length in `config.json`, which differ by family. */
const CONTEXT_NAMES = ["max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"];

/**
 * Reads `config.json` and `generation_config.json`.
 *
 * @throws TritonError INVALID_ARG that names the field, the expected and the given value
 */
export function readDecoderConfig(
  { config, generation, tokenizerConfig }: ModelDirectory,
  tokenizer: TextTokenizer,
): DecoderConfig {
  const heads = countField(config, "num_attention_heads");
  const width = countField(config, "hidden_size");
  const context = CONTEXT_NAMES.map((name) => countField(config, name)).find((value) => value !== undefined);
  return {
    contextLength: context,
    kvHeads: countField(config, "num_key_value_heads") ?? heads,
    headSize: countField(config, "head_dim") ?? (width && heads ? width / heads : undefined),
    endTokens: endTokens(config, generation, tokenizerConfig, tokenizer),
    defaults: readDefaults(generation),
  };
}

/** A text ends at the tokens of `generation_config.json`, else of `config.json`, else of the tokenizer. */
function endTokens(
  config: ModelFileObject,
  generation: ModelFileObject,
  tokenizerConfig: ModelFileObject,
  tokenizer: TextTokenizer,
): readonly number[] {
  for (const [file, source] of [
    ["generation_config.json", generation],
    ["config.json", config],
  ] as const) {
    const value = source.eos_token_id ?? undefined;
    if (value === undefined) continue;
    const ids: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (ids.every((id): id is number => Number.isSafeInteger(id) && (id as number) >= 0)) return ids;
    throw wrongField(file, "eos_token_id", "a token number or a list of them", value);
  }
  const token = tokenizerConfig.eos_token as { content?: unknown } | string | null | undefined;
  const id = tokenizer.idOf(String(typeof token === "object" ? token?.content : token));
  return id === undefined ? [] : [id];
}

/** As in transformers, a model samples only if `do_sample` is true. */
function readDefaults(generation: ModelFileObject): SamplingParameters {
  const samples = generation.do_sample === true;
  const number = (name: string) => {
    const value = generation[name] ?? undefined;
    if (value === undefined || (typeof value === "number" && Number.isFinite(value))) return value;
    throw wrongField("generation_config.json", name, "a number", value);
  };
  const values = {
    maxTokens: number("max_new_tokens"),
    repetitionPenalty: number("repetition_penalty"),
    temperature: samples ? (number("temperature") ?? 1) : 0,
    ...(samples ? { topK: number("top_k"), topP: number("top_p"), minP: number("min_p") } : {}),
  };
  return definedMembers(values);
}

function countField(config: ModelFileObject, name: string): number | undefined {
  const value = config[name] ?? undefined;
  if (value === undefined || (Number.isSafeInteger(value) && (value as number) > 0)) {
    return value as number | undefined;
  }
  throw wrongField("config.json", name, "an integer of at least 1", value);
}

function wrongField(file: string, name: string, expected: string, got: unknown): TritonError {
  const text = `cannot read ${file}: expected '${name}' to be ${expected}, got ${JSON.stringify(got)}`;
  return errorFor("INVALID_MODEL", text);
}
