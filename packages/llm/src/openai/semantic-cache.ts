import { createHash } from "node:crypto";
import { ClientGone, firstHeader, type V2Response } from "@tritonjs/http/frontend";
import {
  assertOptions,
  errorFor,
  type ModelConfig,
  type OptionTypes,
  optionTypes,
  TritonError,
} from "@tritonjs/protocol";
import { type AnswerWriter, EVENT_STREAM_HEADERS, type WholeAnswer, type WholeChoice } from "./answers.js";
import type { Chat } from "./chat-request.js";
import { embeddingCalls, embeddingModelOf, runEmbeddings } from "./embeddings.js";
import type { ChoiceDelta, Usage } from "./generation.js";
import { OpenAiError } from "./openai-error.js";
import { jsonResult, type OpenAiExchange } from "./openai-exchange.js";
import { isStructured } from "./request-fields.js";

/** Options of the cache of answers to chats whose last messages mean the same. */
export interface SemanticCacheOptions {
  /** Model that embeds the last messages: one that `/v1/embeddings` can call. */
  readonly model: string;
  /** Least cosine of two embeddings for one answer, above 0 to 1. @default 0.95 */
  readonly threshold?: number;
  /** How long an answer is kept, in seconds. @default 3600 */
  readonly ttlSeconds?: number;
  /** Largest number of answers. @default 1000 */
  readonly maxEntries?: number;
  /** Largest size of all answers with their embeddings, in bytes. @default 16 MiB */
  readonly maxBytes?: number;
  /** Models whose chats are cached. @default all */
  readonly models?: readonly string[];
  /**
   * Largest `temperature` of a request that is cached. A request without one counts as 1, as in OpenAI's API.
   * @default 0
   */
  readonly maxTemperature?: number;
  /**
   * Whether two messages with one answer have the same numbers and names: words with a digit, or with a capital letter
   * inside of a sentence. Embeddings tell those apart worst. @default true
   */
  readonly exactTerms?: boolean;
  /**
   * Header that tells callers apart who send the same API key. Callers with different keys never share answers.
   * @default none
   */
  readonly namespaceHeader?: string;
}

const OPTION_TYPES: OptionTypes = optionTypes<SemanticCacheOptions>({
  model: "string",
  threshold: "number",
  ttlSeconds: "number",
  maxEntries: "number",
  maxBytes: "number",
  models: "array",
  maxTemperature: "number",
  exactTerms: "boolean",
  namespaceHeader: "string",
});

/** Most answers of a cache: a look-up compares with all of those that it may use. */
const MOST_ENTRIES = 100_000;
/** Longest message that is embedded, in characters. A longer one differs from another in more than its meaning. */
const LONGEST_TEXT = 8192;
/** Bytes of an entry besides its texts and its embedding. */
const ENTRY_BYTES = 512;

export const CACHE_HEADER = "x-semantic-cache";
export const SIMILARITY_HEADER = "x-semantic-cache-similarity";

interface Entry {
  readonly bucket: string;
  readonly vector: Float32Array;
  readonly answer: WholeAnswer;
  readonly bytes: number;
  /** When it is too old, on the clock of `performance.now()`. */
  readonly expires: number;
}

/** What a look-up found. */
interface CacheLookUp {
  readonly state: "hit" | "miss" | "bypass";
  /** Cosine to the nearest answer that the request may have; undefined without one. */
  readonly similarity?: number | undefined;
  /** The answer of a hit. */
  readonly answer?: WholeAnswer | undefined;
  /** Keeps the answer after a miss. */
  readonly store?: (answer: WholeAnswer) => void;
}

/**
 * Answers of chats, found by the meaning of the last message. All else of a request must be equal: the model's version,
 * the messages before, all settings, and the caller. A request whose answer depends on more than its text is let
 * through: with tools, a structure, several choices, log probabilities, or content that is not text.
 *
 * The cache never fails a request. If the embedding fails, the request runs as without a cache.
 */
export class SemanticCache {
  /** In the order of their last use. */
  readonly #entries = new Set<Entry>();
  readonly #buckets = new Map<string, Set<Entry>>();
  readonly #versions = new WeakMap<ModelConfig, number>();
  #lastVersion = 0;
  #bytes = 0;
  #hasWarned = false;
  readonly #options: Required<Omit<SemanticCacheOptions, "models" | "namespaceHeader">> &
    Pick<SemanticCacheOptions, "models" | "namespaceHeader">;

  /** @throws TritonError INVALID_ARG for an unknown option or a wrong value */
  constructor(options: SemanticCacheOptions) {
    assertOptions("openai({ semanticCache })", options, OPTION_TYPES);
    const given = {
      threshold: 0.95,
      ttlSeconds: 3600,
      maxEntries: 1000,
      maxBytes: 16 * 1024 * 1024,
      maxTemperature: 0,
      exactTerms: true,
      ...options,
    };
    if (!given.model) {
      throw errorFor("INVALID_OPTION", "openai semanticCache.model: expected the name of a model, got none");
    }
    checkNumber("threshold", given.threshold, "above 0 to 1", given.threshold > 0 && given.threshold <= 1);
    checkNumber("ttlSeconds", given.ttlSeconds, "above 0", given.ttlSeconds > 0);
    const entries = given.maxEntries;
    const isCount = Number.isInteger(entries) && entries >= 1 && entries <= MOST_ENTRIES;
    checkNumber("maxEntries", entries, `from 1 to ${MOST_ENTRIES}, whole`, isCount);
    checkNumber("maxBytes", given.maxBytes, "of at least 1", given.maxBytes >= 1);
    const { maxTemperature } = given;
    checkNumber("maxTemperature", maxTemperature, "from 0 to 2", maxTemperature >= 0 && maxTemperature <= 2);
    this.#options = given;
  }

  /**
   * Looks for an answer to a chat.
   *
   * @param config the model version that would answer
   * @throws ClientGone when the client leaves meanwhile
   */
  async find(exchange: OpenAiExchange, chat: Chat, config: ModelConfig): Promise<CacheLookUp> {
    const found = await this.#find(exchange, chat, config);
    exchange.service.countMetric?.(
      {
        name: "tritonjs_semantic_cache_requests_total",
        help: "Chats by what the semantic cache had for them",
      },
      { model: chat.model, result: found.state },
      1,
    );
    return found;
  }

  async #find(exchange: OpenAiExchange, chat: Chat, config: ModelConfig): Promise<CacheLookUp> {
    const text = this.#cachedText(chat);
    if (text === undefined) return { state: "bypass" };
    const vector = await this.#embed(exchange, text);
    if (vector === undefined) return { state: "bypass" };
    const bucket = this.#bucketOf(exchange, chat, config, this.#options.exactTerms ? termsOf(text) : []);
    const { entry, similarity } = this.#nearest(bucket, vector);
    if (entry !== undefined && similarity! >= this.#options.threshold) {
      this.#entries.delete(entry);
      this.#entries.add(entry);
      return { state: "hit", similarity, answer: entry.answer };
    }
    return { state: "miss", similarity, store: (answer) => this.#store(bucket, vector, answer) };
  }

  /** The last message, if the answer to the chat depends on nothing that the cache does not compare. */
  #cachedText({ model, messages, toolUse, sampling, choices, topLogprobs }: Chat): string | undefined {
    const { models, maxTemperature } = this.#options;
    if (models !== undefined && !models.includes(model)) return undefined;
    const { temperature = 1 } = sampling as { temperature?: number };
    if (temperature > maxTemperature) return undefined;
    if (toolUse !== undefined || choices !== 1 || topLogprobs !== undefined) return undefined;
    if (isStructured(sampling)) return undefined;
    if (messages.some((one) => one.role === "tool" || !isText(one.content))) return undefined;
    const last = messages.at(-1)!;
    const text = textOf(last.content);
    return last.role === "user" && text.trim() !== "" && text.length <= LONGEST_TEXT ? text : undefined;
  }

  /** Digest of all that has to be equal. */
  #bucketOf(exchange: OpenAiExchange, chat: Chat, config: ModelConfig, terms: readonly string[]): string {
    const { request } = exchange;
    const { namespaceHeader } = this.#options;
    let version = this.#versions.get(config);
    if (version === undefined) {
      version = ++this.#lastVersion;
      this.#versions.set(config, version);
    }
    const { messages, sampling, variables, addGenerationPrompt, includeReasoning } = chat;
    const { content: _, ...last } = messages.at(-1)!;
    const caller = [
      firstHeader(request, "authorization"),
      namespaceHeader === undefined ? undefined : firstHeader(request, namespaceHeader),
    ].map((one) => one ?? null);
    const settings = Object.entries(sampling).sort(([a], [b]) => (a < b ? -1 : 1));
    const rest = [variables ?? null, addGenerationPrompt, includeReasoning];
    const key = [chat.model, version, caller, messages.slice(0, -1), last, terms, settings, rest];
    return createHash("sha256").update(JSON.stringify(key)).digest("base64");
  }

  /** The embedding of a text with the length 1; undefined if the model fails. */
  async #embed(exchange: OpenAiExchange, text: string): Promise<Float32Array | undefined> {
    try {
      const lookUp = await exchange.lookUpModel(this.#options.model);
      const model = embeddingModelOf(lookUp.current().config);
      const calls = embeddingCalls(model, { inputs: [text], dimensions: undefined });
      const [vector] = (await runEmbeddings(exchange, lookUp, model, calls)).vectors;
      const length = Math.hypot(...vector!);
      return length > 0 && Number.isFinite(length) ? vector!.map((value) => value / length) : undefined;
    } catch (error) {
      if (error instanceof ClientGone) throw error;
      if (!this.#hasWarned) {
        const why = error instanceof OpenAiError ? error.message : TritonError.from(error).message;
        exchange.service.log.warning(`OpenAI: chats are answered without the semantic cache: ${why}`);
      }
      this.#hasWarned = true;
      return undefined;
    }
  }

  #nearest(bucket: string, vector: Float32Array): { entry?: Entry; similarity?: number } {
    const now = performance.now();
    let entry: Entry | undefined;
    let similarity = Number.NEGATIVE_INFINITY;
    for (const one of this.#buckets.get(bucket) ?? []) {
      if (one.expires <= now) {
        this.#drop(one);
        continue;
      }
      const cosine = dotProduct(one.vector, vector);
      if (cosine > similarity) [entry, similarity] = [one, cosine];
    }
    return entry === undefined ? {} : { entry, similarity: Math.min(1, similarity) };
  }

  #store(bucket: string, vector: Float32Array, answer: WholeAnswer): void {
    const [{ text, reasoning, toolCalls, finishReason }] = answer.choices as [WholeChoice];
    if (toolCalls.length > 0 || (finishReason !== "stop" && finishReason !== "length")) return;
    const { maxEntries, maxBytes, ttlSeconds } = this.#options;
    // Texts may have two bytes a character.
    const bytes = ENTRY_BYTES + vector.byteLength + 2 * (text.length + reasoning.length);
    if (bytes > maxBytes) return;
    const { entry: twin, similarity } = this.#nearest(bucket, vector);
    // Another request with the same text was answered meanwhile.
    if (twin !== undefined && similarity! > SAME_TEXT) this.#drop(twin);
    const entry = { bucket, vector, answer, bytes, expires: performance.now() + ttlSeconds * 1000 };
    this.#entries.add(entry);
    this.#bytes += bytes;
    const others = this.#buckets.get(bucket) ?? new Set();
    this.#buckets.set(bucket, others.add(entry));
    for (const oldest of this.#entries) {
      if (this.#entries.size <= maxEntries && this.#bytes <= maxBytes) break;
      this.#drop(oldest);
    }
  }

  #drop(entry: Entry): void {
    if (!this.#entries.delete(entry)) return;
    this.#bytes -= entry.bytes;
    const others = this.#buckets.get(entry.bucket)!;
    others.delete(entry);
    if (others.size === 0) this.#buckets.delete(entry.bucket);
  }
}

/** Cosine above which two texts count as the same one, apart from rounding. */
const SAME_TEXT = 0.999_999;

function checkNumber(name: string, value: number, expected: string, holds: boolean): void {
  if (holds) return;
  throw errorFor(
    "INVALID_OPTION",
    `openai semanticCache.${name}: expected a number ${expected}, got ${value}`,
  );
}

function isText(content: Chat["messages"][number]["content"]): boolean {
  return !Array.isArray(content) || content.every(({ type }) => type === "text");
}

function textOf(content: Chat["messages"][number]["content"]): string {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text = "" }) => text).join("\n");
}

/** The numbers and names of a text, in one order. The first word of a sentence has a capital letter anyway. */
function termsOf(text: string): readonly string[] {
  const terms = new Set<string>();
  for (const { 0: word, index } of text.matchAll(/[\p{L}\p{N}]+(?:[.,'’-][\p{L}\p{N}]+)*/gu)) {
    const begins = /(?:^|[.?!:\n])[^\p{L}\p{N}]*$/u.test(text.slice(Math.max(0, index - 8), index));
    const isName = begins ? /\p{L}.*\p{Lu}/u.test(word) : /\p{Lu}/u.test(word) && word !== "I";
    if (isName || /\p{N}/u.test(word)) terms.add(word.toLowerCase());
  }
  return [...terms].sort();
}

function dotProduct(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return Number.NEGATIVE_INFINITY;
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

/** Headers that tell what the cache had. */
export function cacheHeaders({ state, similarity }: CacheLookUp): Record<string, string> {
  return {
    [CACHE_HEADER]: state,
    ...(similarity !== undefined && { [SIMILARITY_HEADER]: similarity.toFixed(4) }),
  };
}

/** Answers from the cache. A stream gets the words of the text one after the other. */
export function cachedAnswer(answer: WholeAnswer, stream: boolean, writer: AnswerWriter): V2Response {
  if (!stream) return jsonResult(writer.whole(answer));
  const { text, reasoning, finishReason } = answer.choices[0]!;
  const nothing = { text: "", reasoning: "", toolCalls: [], logprobs: [], prompt: [] };
  const words = (whole: string) => whole.match(/\s*\S+|\s+$/g) ?? [];
  const events = [
    writer.begin(),
    ...words(reasoning).map((word) => writer.delta(0, { ...nothing, reasoning: word })),
    ...words(text).map((word) => writer.delta(0, { ...nothing, text: word })),
    writer.choiceEnd(0, finishReason),
    writer.end(answer.usage),
  ];
  return { status: 200, headers: EVENT_STREAM_HEADERS, body: Buffer.from(events.join("")) };
}

/** Writes an answer, and hands it on when it is complete. */
export class RecordingWriter implements AnswerWriter {
  #text = "";
  #reasoning = "";
  #toolCalls = 0;
  #reason: WholeChoice["finishReason"] = "stop";

  constructor(
    private readonly writer: AnswerWriter,
    private readonly onAnswer: (answer: WholeAnswer) => void,
  ) {}

  whole(answer: WholeAnswer): object {
    this.onAnswer(answer);
    return this.writer.whole(answer);
  }

  begin(): string {
    return this.writer.begin();
  }

  delta(choice: number, delta: ChoiceDelta): string {
    this.#text += delta.text;
    this.#reasoning += delta.reasoning;
    this.#toolCalls += delta.toolCalls.length;
    return this.writer.delta(choice, delta);
  }

  choiceEnd(choice: number, reason: WholeChoice["finishReason"]): string {
    this.#reason = reason;
    return this.writer.choiceEnd(choice, reason);
  }

  end(usage: Usage | undefined): string {
    const choice = { text: this.#text, reasoning: this.#reasoning, finishReason: this.#reason };
    const rest = { toolCalls: [], logprobs: [], prompt: [] };
    if (this.#toolCalls === 0) this.onAnswer({ choices: [{ ...choice, ...rest }], usage });
    return this.writer.end(usage);
  }

  error(error: OpenAiError): string {
    return this.writer.error(error);
  }
}
