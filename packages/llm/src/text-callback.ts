import type { InferContext, RequestInfo } from "@tritonjs/core";
import { errorFor } from "@tritonjs/protocol";
import type { GeneratorRequest } from "./text-request.js";

/** Pieces of an answer, over time or at once. */
type YieldedPieces = AsyncIterable<YieldedPiece> | Iterable<YieldedPiece>;

/** A function that generates text, as {@link textGenerator} takes it: a generator, or a function of one answer. */
export type TextCallback = (
  request: GeneratorRequest,
  context: TextGenerationContext,
) => YieldedPieces | YieldedPiece | Promise<YieldedPieces | YieldedPiece>;

/** Why a text ended. */
export type TextFinishReason = (typeof FINISH_REASONS)[number];

export const FINISH_REASONS = ["stop", "length", "tool_calls", "content_filter"] as const;

/** A token with its natural log probability. */
export interface TokenProbability {
  /** The text of the token. */
  readonly token: string;
  /** Natural logarithm of the probability. */
  readonly logprob: number;
  /** The bytes of a token whose text does not show them, such as a part of a character. @default those of `token` */
  readonly bytes?: Iterable<number>;
  /** The number of the token in the vocabulary. @default the token's text takes its place */
  readonly id?: number;
  /** The position among all tokens, 1 for the most likely one. @default the position in `top`, or the one after it */
  readonly rank?: number;
}

/** A generated token with its log probability, and the most likely tokens at its position. */
export interface YieldedLogprob extends TokenProbability {
  /** The most likely tokens, in descending order. */
  readonly top?: readonly TokenProbability[];
}

/** A call of a tool by the model, whole or in parts. */
export interface YieldedToolCall {
  /** Name of the tool. A piece with a name begins a call. A piece without a name continues the call before it. */
  readonly name?: string;
  /** The arguments, as an object or as JSON text. In parts: the next piece of the JSON text. */
  readonly arguments?: string | Readonly<Record<string, unknown>>;
  /** Id of the call, for the first piece of a call. @default a random one */
  readonly id?: string;
  /** Number of the call from 0, for calls whose parts alternate. @default the last call, or the next one with a name */
  readonly index?: number;
}

/** Numbers of tokens as the engine counts them. */
export interface TokenUsage {
  /** Tokens of the prompt. */
  readonly promptTokens?: number;
  /** Tokens of the answer. */
  readonly completionTokens?: number;
}

/** A piece of an answer with more than text. Each member is optional, but one must be there. */
export interface YieldedParts {
  /** Next characters of the answer. */
  readonly text?: string;
  /** Next characters of the reasoning before the answer, from an engine that keeps it apart. */
  readonly reasoning?: string;
  /** Number of tokens of `text` and `reasoning`. @default 1, or the length of `logprobs`; 0 without either */
  readonly tokens?: number;
  /** One entry for each token of the piece. */
  readonly logprobs?: readonly YieldedLogprob[];
  /**
   * Why the text ended. Later pieces may report `usage`.
   * @default `tool_calls` after a call of a tool, `length` once `max_tokens` tokens were yielded, else `stop`
   */
  readonly finishReason?: TextFinishReason;
  /** Call of a tool, or a part of one. */
  readonly toolCall?: YieldedToolCall;
  /** Numbers of tokens as the engine counts them, which replace the count of the pieces. */
  readonly usage?: TokenUsage;
}

/** A piece that the callback of {@link textGenerator} yields: text alone, or parts with more than text. */
export type YieldedPiece = string | YieldedParts;

const MEMBERS: Readonly<Record<keyof YieldedParts, (value: unknown) => string | undefined>> = {
  text: (value) => expect(typeof value === "string", "a string", value),
  reasoning: (value) => expect(typeof value === "string", "a string", value),
  tokens: (value) => expect(isCount(value), "a non-negative integer", value),
  logprobs: (value) =>
    expect(Array.isArray(value) && value.every(isLogprob), "an array of { token, logprob }", value),
  finishReason: (value) =>
    expect(FINISH_REASONS.includes(value as TextFinishReason), `one of ${FINISH_REASONS.join(", ")}`, value),
  toolCall: (value) =>
    expect(isToolCall(value), "{ name?, arguments?, id?, index? } with a name or arguments", value),
  usage: (value) => expect(isUsage(value), "{ promptTokens?, completionTokens? } with integers", value),
};

/**
 * Checks a value that a callback yielded.
 *
 * @throws TritonError INTERNAL (reason INVALID_OUTPUT) for any other value.
 */
export function readPiece(value: unknown, modelName: string): YieldedParts {
  if (typeof value === "string") return { text: value };
  const fault = faultOf(value);
  if (fault === undefined) return value as YieldedParts;
  throw errorFor("INVALID_OUTPUT", `model '${modelName}': cannot use a piece of textGenerator: ${fault}`);
}

function faultOf(value: unknown): string | undefined {
  const expected = `a string, or an object with ${Object.keys(MEMBERS).join(", ")}`;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return `expected ${expected}, got ${describe(value)}`;
  }
  let known = 0;
  for (const [name, member] of Object.entries(value)) {
    const check = MEMBERS[name as keyof YieldedParts];
    if (check === undefined) return `expected ${expected}, got a member '${name}'`;
    const fault = member === undefined ? undefined : check(member);
    if (fault !== undefined) return `${name}: ${fault}`;
    if (member !== undefined) known++;
  }
  return known === 0 ? `expected ${expected}, got an object without any` : undefined;
}

function expect(holds: boolean, expected: string, value: unknown): string | undefined {
  return holds ? undefined : `expected ${expected}, got ${describe(value)}`;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isLogprob(value: unknown): boolean {
  const { token, logprob, top } = Object(value) as Partial<YieldedLogprob>;
  if (typeof token !== "string" || typeof logprob !== "number") return false;
  return top === undefined || (Array.isArray(top) && top.every(isLogprob));
}

function isToolCall(value: unknown): boolean {
  const { name, arguments: given, id, index } = Object(value) as YieldedToolCall;
  if (name === undefined && given === undefined) return false;
  if (given !== undefined && typeof given !== "string" && (typeof given !== "object" || given === null))
    return false;
  return isStringOrAbsent(name) && isStringOrAbsent(id) && (index === undefined || isCount(index));
}

function isStringOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

function isUsage(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { promptTokens, completionTokens } = value as TokenUsage;
  return [promptTokens, completionTokens].every((count) => count === undefined || isCount(count));
}

function describe(value: unknown): string {
  if (typeof value === "string" || typeof value === "number") return JSON.stringify(value);
  if (value === null || value === undefined) return String(value);
  return Array.isArray(value) ? "an array" : typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/**
 * Second argument of the callback of {@link textGenerator}: information about the request and its model, and calls of
 * other models. `signal` is aborted when the request is cancelled or out of time: pass it on to the engine.
 */
export interface TextGenerationContext extends InferContext {
  /** The request without its tensors: its id, parameters and priority. */
  readonly request: RequestInfo;
}
