import { randomUUID } from "node:crypto";
import type { WorkerResponseStream } from "@tritonjs/core/backend";
import { errorFor, Tensor, TritonError } from "@tritonjs/protocol";
import type { AnswerReader } from "./chat/answer-reader.js";
import { type AnswerPiece, joinDeltas, type ToolCallDelta } from "./chat/tool-call-pieces.js";
import type { ScoredToken } from "./sampling/token-sampler.js";
import type {
  TextFinishReason,
  TokenProbability,
  TokenUsage,
  YieldedLogprob,
  YieldedParts,
  YieldedToolCall,
} from "./text-callback.js";
import type { TextRequest } from "./text-request.js";
import type { TextTokenizer } from "./text-tokenizer.js";

type Outputs = Map<string, Tensor>;

/**
 * The answer to one request: takes pieces of the callback, ends the text at stop texts and at `max_tokens`, and makes
 * the outputs of responses.
 *
 * A text whose end is held back waits with its tokens and their probabilities for the next response.
 */
export class TextAnswer {
  readonly #stops: StopTexts;
  readonly #toolCalls: ToolCallDeltas;
  /** Finds calls of tools and reasoning in the text, for a template that shows their form. */
  readonly #reader: AnswerReader | undefined;
  #hasFoundCalls = false;
  #tokens = 0;
  #finishReason: TextFinishReason | undefined;
  #usage: TokenUsage = {};
  #responses = 0;
  /** Tokens that responses have counted. */
  #counted = 0;
  #text = "";
  #reasoning = "";
  #logprobs: YieldedLogprob[] = [];

  constructor(
    private readonly request: TextRequest,
    modelName: string,
  ) {
    const { stop = [], includeStopStrInOutput } = request.sampling;
    this.#stops = new StopTexts(stop, includeStopStrInOutput);
    this.#toolCalls = new ToolCallDeltas(modelName, request.parallelToolCalls);
    this.#reader = request.reader;
    this.#text = request.prefix;
  }

  /** Takes a piece. Returns true if the answer is complete, so that no further pieces are wanted. */
  take({ text, reasoning, tokens, logprobs, finishReason, toolCall, usage }: YieldedParts): boolean {
    if (usage !== undefined) this.#usage = { ...this.#usage, ...usage };
    if (toolCall !== undefined) this.#toolCalls.add(toolCall);
    const count = tokens ?? logprobs?.length ?? (text || reasoning ? 1 : 0);
    const { maxTokens = Number.POSITIVE_INFINITY } = this.request.sampling;
    if (count > 0 && this.#tokens + count > maxTokens) {
      this.#finishReason = "length";
      return true;
    }
    this.#tokens += count;
    if (logprobs !== undefined) this.#logprobs.push(...logprobs);
    this.#finishReason = finishReason ?? this.#finishReason;
    // Reasoning that comes by itself has no place in a text.
    if (reasoning !== undefined && this.request.wanted.reasoning) this.#reasoning += reasoning;
    const { text: certain, stopped } = this.#stops.take(text ?? "");
    this.#add(certain);
    if (stopped) this.#finishReason = "stop";
    return stopped;
  }

  /** The outputs of the next response of a stream; undefined if there is nothing to send yet. */
  next(): Outputs | undefined {
    if (!this.request.stream || !this.#waits) return undefined;
    return this.#outputs(this.#tokens - this.#counted, "null");
  }

  /** The outputs of the last response. Undefined for a stream that needs no further response. */
  last(): Outputs | undefined {
    this.#add(this.#stops.rest());
    if (this.#reader !== undefined) this.#addFound(this.#reader.end());
    const { wanted, stream, sampling } = this.request;
    const tokens = Math.max(0, (this.#usage.completionTokens ?? this.#tokens) - this.#counted);
    const full = this.#tokens >= (sampling.maxTokens ?? Number.POSITIVE_INFINITY);
    const reason = this.#reasonOr(this.#toolCalls.any ? "tool_calls" : full ? "length" : "stop");
    const tells = wanted.finishReason || (wanted.outputTokens && tokens > 0) || wanted.inputTokens;
    const rest = this.#waits || this.#logprobs.length > 0;
    if (stream && this.#responses > 0 && !rest && !tells) return undefined;
    return this.#outputs(tokens, reason);
  }

  /** True if there is something that no response has sent. */
  get #waits(): boolean {
    return this.#text !== "" || this.#reasoning !== "" || this.#toolCalls.waiting;
  }

  /** Replaces `stop` after a call: an engine that does not find the calls in its text reports `stop`. */
  #reasonOr(other: TextFinishReason): TextFinishReason {
    return this.#finishReason === "stop" && this.#hasFoundCalls
      ? "tool_calls"
      : (this.#finishReason ?? other);
  }

  #add(text: string): void {
    if (this.#reader === undefined) this.#text += text;
    else if (text !== "") this.#addFound(this.#reader.push(text));
  }

  #addFound(pieces: readonly AnswerPiece[]): void {
    for (const piece of pieces) {
      if ("content" in piece) this.#text += piece.content;
      else if ("reasoning" in piece) {
        if (this.request.wanted.reasoning) this.#reasoning += piece.reasoning;
        else this.#text += piece.reasoning;
      } else {
        this.#hasFoundCalls = true;
        this.#toolCalls.addDelta(piece);
      }
    }
  }

  #outputs(tokens: number, finishReason: string): Outputs {
    const { promptTokens } = this.#usage;
    const logprobs = this.#logprobs;
    const outputs = textOutputs(
      this.request.wanted,
      this.#text,
      finishReason,
      logprobs,
      promptTokens,
      tokens,
    );
    if (this.request.wanted.toolCalls || this.#toolCalls.waiting) {
      outputs.set("tool_calls", textTensor(JSON.stringify(this.#toolCalls.take())));
    }
    if (this.request.wanted.reasoning) outputs.set("reasoning_content", textTensor(this.#reasoning));
    this.#reasoning = "";
    this.#responses++;
    this.#counted += tokens;
    this.#text = "";
    this.#logprobs = [];
    return outputs;
  }
}

function textOutputs(
  wanted: TextRequest["wanted"],
  text: string,
  finishReason: string,
  logprobs: readonly YieldedLogprob[],
  promptTokens: number | undefined,
  tokens: number,
): Outputs {
  const outputs: Outputs = new Map([["text_output", textTensor(text)]]);
  if (wanted.finishReason) outputs.set("finish_reason", textTensor(finishReason));
  if (wanted.logprobs) outputs.set("logprobs", textTensor(logprobsJson(logprobs)));
  if (wanted.inputTokens && promptTokens !== undefined) {
    outputs.set("num_input_tokens", countTensor(promptTokens));
  }
  if (wanted.outputTokens) outputs.set("num_output_tokens", countTensor(tokens));
  return outputs;
}

function textTensor(text: string): Tensor {
  return Tensor.fromElements("BYTES", [1], [Buffer.from(text)]);
}

function countTensor(count: number): Tensor {
  return Tensor.fromElements("UINT32", [1], Uint32Array.of(count));
}

/**
 * Sends the responses to one request: pieces of the text as they come for a stream, else the whole text at the end.
 */
export class TextResponses {
  #text: string;
  #tokens = 0;
  #logprobs: ScoredToken[][] = [];
  #prompt: ScoredToken[][] = [];

  constructor(
    private readonly request: Pick<TextRequest, "stream" | "prefix" | "wanted">,
    private readonly stream: WorkerResponseStream,
    private readonly tokenizer: Pick<TextTokenizer, "textOf" | "bytesOf">,
    private readonly promptTokens: number,
  ) {
    this.#text = request.prefix;
  }

  /** False once the request was cancelled or answered. */
  get isOpen(): boolean {
    return this.stream.isOpen(0);
  }

  /** Undefined while the client keeps up, else a promise that resolves when it does again. */
  get writable(): Promise<void> | undefined {
    return this.request.stream ? this.stream.writable(0) : undefined;
  }

  get wantsLogprobs(): boolean {
    return this.request.wanted.logprobs;
  }

  addToken(logprobs: ScoredToken[] | undefined): void {
    this.#tokens++;
    if (logprobs !== undefined) this.#logprobs.push(logprobs);
  }

  /** Adds a token of the prompt, for the first response. */
  addPromptToken(logprobs: ScoredToken[]): void {
    this.#prompt.push(logprobs);
  }

  addText(text: string): void {
    this.#text += text;
  }

  /** Sends the text that came since the last response of a stream, if there is any. */
  flush(): void {
    if (!this.request.stream || this.#text === "") return;
    this.#send(undefined);
  }

  finish(reason: "stop" | "length"): void {
    this.#send(reason);
  }

  fail(error: unknown): void {
    this.stream.sendError(0, TritonError.from(error), true);
  }

  #send(finish: "stop" | "length" | undefined): void {
    const { wanted } = this.request;
    const reason = finish ?? "null";
    const logprobs = this.#logprobs.map((token) => this.#shown(token));
    const tensors = textOutputs(wanted, this.#text, reason, logprobs, this.promptTokens, this.#tokens);
    if (wanted.promptLogprobs) {
      tensors.set(
        "prompt_logprobs",
        textTensor(logprobsJson(this.#prompt.map((token) => this.#shown(token)))),
      );
    }
    this.#prompt = [];
    this.#text = "";
    this.#tokens = 0;
    this.#logprobs = [];
    this.stream.send(0, tensors, finish !== undefined);
  }

  #shown([chosen, ...others]: readonly ScoredToken[]): YieldedLogprob {
    return { ...this.#described(chosen!), top: others.map((one) => this.#described(one)) };
  }

  /** The bytes are sent only where the text does not show them, as for a part of a character. */
  #described(one: ScoredToken): TokenProbability {
    const { id } = one;
    const token = this.tokenizer.textOf(id);
    return token.includes("\ufffd")
      ? { ...one, token, bytes: this.tokenizer.bytesOf(id) }
      : { ...one, token };
  }
}

/** Text that may be sent, and whether a stop text ended it. */
interface CertainText {
  /** Text that may be sent now; often empty. */
  readonly text: string;
  /** True if a stop text has ended the text. */
  readonly stopped: boolean;
}

/**
 * Ends a text at the first of several stop texts, wherever the borders of its pieces lie. It holds back the end of the
 * text for as long as that end may be the beginning of a stop text, or half of a character:
 *
 * ```
 * stop "END":  "one E" -> "one "     "N" -> ""     "TRY" -> "ENTRY"
 *                    held "E"       held "EN"    no stop text: all of it
 * ```
 *
 * Of several stop texts, the one that ends first counts. So the result does not depend on the pieces.
 */
export class StopTexts {
  readonly #stops: readonly string[];
  readonly #keep: boolean;
  #held = "";

  /**
   * @param stops stop texts, none empty
   * @param keep whether the stop text stays in the text
   */
  constructor(stops: readonly string[], keep = false) {
    this.#stops = stops;
    this.#keep = keep;
  }

  /** Takes the next piece, and returns the text that is certain now. */
  take(piece: string): CertainText {
    const text = this.#held + piece;
    const found = this.#firstStop(text);
    if (found !== undefined) {
      this.#held = "";
      return { text: text.slice(0, this.#keep ? found.end : found.start), stopped: true };
    }
    const certain = text.length - this.#uncertainLength(text);
    this.#held = text.slice(certain);
    return { text: text.slice(0, certain), stopped: false };
  }

  /** Returns the text that is still held back, once no more pieces follow. */
  rest(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }

  #firstStop(text: string): { readonly start: number; readonly end: number } | undefined {
    let first: { start: number; end: number } | undefined;
    for (const stop of this.#stops) {
      const start = text.indexOf(stop);
      if (start < 0) continue;
      const end = start + stop.length;
      if (first === undefined || end < first.end || (end === first.end && start < first.start)) {
        first = { start, end };
      }
    }
    return first;
  }

  /** Length of the longest end of `text` with which a stop text begins; at least that of half a character. */
  #uncertainLength(text: string): number {
    let longest = /[\ud800-\udbff]$/.test(text) ? 1 : 0;
    for (const stop of this.#stops) {
      for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
        if (text.endsWith(stop.slice(0, length))) {
          longest = length;
          break;
        }
      }
    }
    return longest;
  }
}

/** Numbers the calls of tools in one answer, and collects their changes until a response takes them. */
class ToolCallDeltas {
  readonly #begun = new Set<number>();
  #last = -1;
  #pending: ToolCallDelta[] = [];

  /** @param parallel false to leave out calls after the first one */
  constructor(
    private readonly modelName: string,
    private readonly parallel: boolean,
  ) {}

  get any(): boolean {
    return this.#begun.size > 0;
  }

  /** True if there are changes that no response has taken. */
  get waiting(): boolean {
    return this.#pending.length > 0;
  }

  /** @throws TritonError INTERNAL for a piece that continues a call which has not begun. */
  add(piece: YieldedToolCall): void {
    const { name, index = name === undefined ? this.#last : this.#next() } = piece;
    const given = piece.arguments;
    const text = given === undefined || typeof given === "string" ? given : JSON.stringify(given);
    this.#last = index;
    if (this.#begun.has(index)) {
      this.addDelta({ index, function: { ...(text !== undefined && { arguments: text }) } });
      return;
    }
    if (name === undefined) {
      const text = "toolCall: expected a name in the first piece of a call, got none";
      throw errorFor(
        "INVALID_OUTPUT",
        `model '${this.modelName}': cannot use a piece of textGenerator: ${text}`,
      );
    }
    const id = piece.id ?? `call_${randomUUID().replaceAll("-", "")}`;
    this.addDelta({ index, id, type: "function", function: { name, arguments: text ?? "" } });
  }

  /** Adds a change, such as one that was found in the text. */
  addDelta(delta: ToolCallDelta): void {
    this.#begun.add(delta.index);
    if (this.parallel || delta.index === firstOf(this.#begun)) this.#pending.push(delta);
  }

  /** The changes since the last call, with one entry for each call. */
  take(): readonly ToolCallDelta[] {
    const deltas = joinDeltas(this.#pending);
    this.#pending = [];
    return deltas;
  }

  #next(): number {
    return this.#begun.size === 0 ? 0 : Math.max(...this.#begun) + 1;
  }
}

function firstOf<T>(values: Iterable<T>): T | undefined {
  return values[Symbol.iterator]().next().value;
}

/** In place of minus infinity, which JSON cannot express; the value that OpenAI answers. */
export const LOWEST_LOGPROB = -9999;

/**
 * The JSON of the output `logprobs`: an object for each token, from the number of a token to its probability. The
 * generated token comes first, then the most likely ones. It is written here because `JSON.stringify` would sort the
 * numbers.
 */
function logprobsJson(tokens: readonly YieldedLogprob[]): string {
  if (tokens.length === 0) return "null";
  return `[${tokens.map(tokenJson).join(",")}]`;
}

function tokenJson(chosen: YieldedLogprob): string {
  const top = chosen.top ?? [];
  const position = top.findIndex((one) => tokenKey(one) === tokenKey(chosen));
  const entries = [logprobEntry(chosen, position < 0 ? top.length + 1 : position + 1)];
  for (const [i, one] of top.entries()) {
    if (i !== position) entries.push(logprobEntry(one, i + 1));
  }
  return `{${entries.join(",")}}`;
}

function logprobEntry(one: TokenProbability, position: number): string {
  const { token, logprob, rank = position, bytes } = one;
  const known = {
    logprob: Math.max(logprob, LOWEST_LOGPROB),
    rank,
    decoded_token: token,
    ...(bytes !== undefined && { bytes: [...bytes] }),
  };
  return `${JSON.stringify(tokenKey(one))}:${JSON.stringify(known)}`;
}

function tokenKey({ id, token }: TokenProbability): string {
  return id === undefined ? token : String(id);
}
