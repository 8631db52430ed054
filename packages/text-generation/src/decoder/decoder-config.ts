import { definedMembers, TritonError } from "@tritonjs/protocol";
import type { SamplingParameters } from "../sampling/sampling-parameters.js";
import type { TextTokenizer } from "../tokenizer/text-tokenizer.js";
import type { ModelDirectory, ModelFileObject } from "./model-directory.js";

/** Settings for the generation of text in the files of a model. */
export interface DecoderConfig {
  /** Tokens of a prompt and its text together; undefined if the files do not say. */
  readonly contextLength: number | undefined;
  /** Heads and size of the keys, where the graph leaves them open. */
  readonly kvHeads: number | undefined;
  readonly headSize: number | undefined;
  /** Tokens that end a text. */
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
  const heads = count(config, "num_attention_heads");
  const width = count(config, "hidden_size");
  const context = CONTEXT_NAMES.map((name) => count(config, name)).find((value) => value !== undefined);
  return {
    contextLength: context,
    kvHeads: count(config, "num_key_value_heads") ?? heads,
    headSize: count(config, "head_dim") ?? (width && heads ? width / heads : undefined),
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
    throw wrong(file, "eos_token_id", "a token number or a list of them", value);
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
    throw wrong("generation_config.json", name, "a number", value);
  };
  const values = {
    maxTokens: number("max_new_tokens"),
    repetitionPenalty: number("repetition_penalty"),
    temperature: samples ? (number("temperature") ?? 1) : 0,
    ...(samples ? { topK: number("top_k"), topP: number("top_p"), minP: number("min_p") } : {}),
  };
  return definedMembers(values);
}

function count(config: ModelFileObject, name: string): number | undefined {
  const value = config[name] ?? undefined;
  if (value === undefined || (Number.isSafeInteger(value) && (value as number) > 0)) {
    return value as number | undefined;
  }
  throw wrong("config.json", name, "an integer of at least 1", value);
}

function wrong(file: string, name: string, expected: string, got: unknown): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `cannot read ${file}: expected '${name}' to be ${expected}, got ${JSON.stringify(got)}`,
    { reason: "INVALID_MODEL" },
  );
}
