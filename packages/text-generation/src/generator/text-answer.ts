import { Tensor } from "@tritonjs/protocol";
import type { ToolCallPiece } from "../chat/tool-calls/tool-call-piece.js";
import { createToolCallReader, type ToolCallReader } from "../chat/tool-calls/tool-call-reader.js";
import type { TextRequest } from "../request/text-request.js";
import { StopTexts } from "../tokenizer/stop-texts.js";
import { logprobsJson } from "./logprobs-json.js";
import { ToolCallDeltas } from "./tool-call-deltas.js";
import type { TextFinishReason, TokenUsage, YieldedLogprob, YieldedParts } from "./yielded-piece.js";

/** Outputs of one response. */
type Outputs = Map<string, Tensor>;

/**
 * The answer to one request: takes pieces of the callback, ends the text at stop texts and at `max_tokens`, and makes
 * the outputs of responses.
 *
 * A text whose end is held back waits with its tokens and their probabilities for the next response.
 */
export class TextAnswer {
  readonly #request: TextRequest;
  readonly #stops: StopTexts;
  readonly #toolCalls: ToolCallDeltas;
  /** Finds calls of tools in the text, for a template whose family is known. */
  readonly #reader: ToolCallReader | undefined;
  /** Tokens of all pieces. */
  #tokens = 0;
  #finishReason: TextFinishReason | undefined;
  #usage: TokenUsage = {};
  #responses = 0;
  /** Tokens that responses have counted. */
  #counted = 0;
  /** Text of the next response. */
  #text = "";
  #logprobs: YieldedLogprob[] = [];

  constructor(request: TextRequest, modelName: string) {
    this.#request = request;
    const { stop = [], includeStopStrInOutput } = request.sampling;
    this.#stops = new StopTexts(stop, includeStopStrInOutput);
    this.#toolCalls = new ToolCallDeltas(modelName);
    const { tools, toolCallFamily: family } = request;
    this.#reader = family && tools && createToolCallReader(family, { tools });
    this.#text = request.prefix;
  }

  /** Takes a piece. Returns true if the answer is complete, so that no further pieces are wanted. */
  take({ text, tokens, logprobs, finishReason, toolCall, usage }: YieldedParts): boolean {
    if (usage !== undefined) this.#usage = { ...this.#usage, ...usage };
    if (toolCall !== undefined) this.#toolCalls.add(toolCall);
    const count = tokens ?? logprobs?.length ?? (text ? 1 : 0);
    const { maxTokens = Number.POSITIVE_INFINITY } = this.#request.sampling;
    if (count > 0 && this.#tokens + count > maxTokens) {
      this.#finishReason = "length";
      return true;
    }
    this.#tokens += count;
    if (logprobs !== undefined) this.#logprobs.push(...logprobs);
    this.#finishReason = finishReason ?? this.#finishReason;
    const { text: certain, stopped } = this.#stops.take(text ?? "");
    this.#add(certain);
    if (stopped) this.#finishReason = "stop";
    return stopped;
  }

  /** The outputs of the next response of a stream; undefined if there is nothing to send yet. */
  next(): Outputs | undefined {
    if (!this.#request.stream || (this.#text === "" && !this.#toolCalls.waiting)) return undefined;
    return this.#outputs(this.#tokens - this.#counted, "null");
  }

  /** The outputs of the last response. Undefined for a stream that needs no further response. */
  last(): Outputs | undefined {
    this.#add(this.#stops.rest());
    if (this.#reader !== undefined) this.#addFound(this.#reader.end());
    const { wanted, stream, sampling } = this.#request;
    const tokens = Math.max(0, (this.#usage.completionTokens ?? this.#tokens) - this.#counted);
    const full = this.#tokens >= (sampling.maxTokens ?? Number.POSITIVE_INFINITY);
    const reason = this.#reasonOr(this.#toolCalls.any ? "tool_calls" : full ? "length" : "stop");
    const tells = wanted.finishReason || (wanted.outputTokens && tokens > 0) || wanted.inputTokens;
    const rest = this.#text !== "" || this.#toolCalls.waiting || this.#logprobs.length > 0;
    if (stream && this.#responses > 0 && !rest && !tells) return undefined;
    return this.#outputs(tokens, reason);
  }

  /** Replaces `stop` after a call: an engine that does not find the calls in its text reports `stop`. */
  #reasonOr(other: TextFinishReason): TextFinishReason {
    return this.#finishReason === "stop" && this.#reader?.hasCalls
      ? "tool_calls"
      : (this.#finishReason ?? other);
  }

  #add(text: string): void {
    if (this.#reader === undefined) this.#text += text;
    else if (text !== "") this.#addFound(this.#reader.push(text));
  }

  #addFound(pieces: readonly ToolCallPiece[]): void {
    for (const piece of pieces) {
      if ("content" in piece) this.#text += piece.content;
      else this.#toolCalls.addDelta(piece);
    }
  }

  #outputs(tokens: number, finishReason: string): Outputs {
    const { wanted } = this.#request;
    const { promptTokens } = this.#usage;
    const outputs: Outputs = new Map([["text_output", textTensor(this.#text)]]);
    if (wanted.finishReason) outputs.set("finish_reason", textTensor(finishReason));
    if (wanted.logprobs) {
      const json = this.#logprobs.length > 0 ? logprobsJson(this.#logprobs) : "null";
      outputs.set("logprobs", textTensor(json));
    }
    if (wanted.inputTokens && promptTokens !== undefined) {
      outputs.set("num_input_tokens", countTensor(promptTokens));
    }
    if (wanted.outputTokens) outputs.set("num_output_tokens", countTensor(tokens));
    if (wanted.toolCalls || this.#toolCalls.waiting) {
      outputs.set("tool_calls", textTensor(JSON.stringify(this.#toolCalls.take())));
    }
    this.#responses++;
    this.#counted += tokens;
    this.#text = "";
    this.#logprobs = [];
    return outputs;
  }
}

function textTensor(text: string): Tensor {
  return Tensor.fromElements("BYTES", [1], [Buffer.from(text)]);
}

function countTensor(count: number): Tensor {
  return Tensor.fromElements("UINT32", [1], Uint32Array.of(count));
}
