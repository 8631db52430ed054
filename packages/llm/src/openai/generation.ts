import { type Tensor, TritonError } from "@tritonjs/protocol";
import type { Exchange, InferenceResponse, InferInit } from "@tritonjs/server";
import type { AnswerReader } from "../chat/answer-reader.js";
import { type AnswerPiece, joinDeltas, type ToolCallDelta } from "../chat/tool-call-pieces.js";
import { LOWEST_LOGPROB, StopTexts } from "../text-answer.js";
import { FINISH_REASONS, type TextFinishReason } from "../text-callback.js";
import type { OpenAiExchange } from "./openai-exchange.js";
import { type TextCall, type TextModel, textInputs } from "./text-model.js";

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** Receives the progress of an answer. After `onError` or `onEnd`, nothing more is called but `onSettled`. */
interface GenerationListener {
  /** Called once, before the first part: the model has begun to answer. */
  onBegin(): void;
  onDelta(choice: number, delta: ChoiceDelta): void;
  onChoiceEnd(choice: number, reason: TextFinishReason): void;
  /** @param usage undefined if the model does not report it */
  onEnd(usage: Usage | undefined): void;
  onError(error: unknown): void;
  /** Called once, when the model has finished with all requests. */
  onSettled(): void;
}

/**
 * Runs the requests of one answer side by side. The first error ends them all. When the client leaves, all of them are
 * cancelled at once.
 */
export class Generation {
  readonly #choices: readonly TextChoice[];
  readonly #calls: Exchange[] = [];
  #listener!: GenerationListener;
  #open: number;
  /** Number of requests that are in flight or still to be sent. */
  #unsettled: number;
  #begun = false;
  #over = false;
  #stopWatching: () => void = () => {};

  /**
   * Plans a request to the model for each choice of each prompt. Choices of one prompt have seeds in a row.
   *
   * @param lookUp the look-up of the model, whose version all requests are for
   */
  constructor(
    private readonly exchange: OpenAiExchange,
    private readonly lookUp: Exchange,
    model: TextModel,
    calls: readonly PromptCall[],
  ) {
    const withoutEffect = (field: string) => exchange.warnings.withoutEffect(model.name, field);
    this.#choices = calls.flatMap((call, prompt) =>
      Array.from({ length: call.choices }, (_, choice) => {
        const { seed } = call.sampling;
        const sampling =
          choice > 0 && typeof seed === "number" ? { ...call.sampling, seed: seed + choice } : call.sampling;
        const structureField = exchange.structureFields[model.name];
        return new TextChoice(model, { ...call, sampling, structureField }, prompt, withoutEffect);
      }),
    );
    this.#open = this.#choices.length;
    this.#unsettled = this.#choices.length;
  }

  get length(): number {
    return this.#choices.length;
  }

  /** Sends all requests. Errors go to the listener. */
  start(listener: GenerationListener): void {
    this.#listener = listener;
    const { request } = this.exchange;
    this.#stopWatching = request.onGone(() => this.cancel());
    let isRefused = false;
    for (let index = 0; index < this.#choices.length; index++) {
      if (this.#over || request.gone || isRefused) this.#settle();
      else isRefused = this.#send(index) !== undefined;
    }
    // An inline callback has already run by now, and the client may have left meanwhile.
    if (request.gone) this.cancel();
  }

  /** Stops all requests. The listener gets no further part, end or error. */
  cancel(): void {
    this.#over = true;
    for (const call of this.#calls) call.cancel();
  }

  pause(): void {
    for (const call of this.#calls) call.pause();
  }

  resume(): void {
    for (const call of this.#calls) call.resume();
  }

  /** @returns the turn of the refusal, if the request is refused and that has to wait */
  #send(index: number): Promise<void> | undefined {
    const suffix = this.#choices.length === 1 ? "" : `-${index}`;
    const { call, init } = this.exchange.newCall(this.lookUp.model, suffix, this.#choices[index]!.tensors);
    this.#calls.push(call);
    return call.send(init, {
      respond: (outcome, final) => this.#receive(index, outcome, final),
      refuse: (error) => {
        this.#fail(error);
        this.#settle();
      },
    });
  }

  #receive(index: number, outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    const choice = this.#choices[index]!;
    if (!this.#over && !choice.stopped) {
      try {
        if (TritonError.is(outcome)) throw outcome;
        this.#advance(index, choice, outcome, final);
      } catch (error) {
        this.#fail(error);
      }
    }
    if (final) this.#settle();
  }

  #advance(index: number, choice: TextChoice, response: InferenceResponse | undefined, final: boolean): void {
    if (!this.#begun) {
      this.#begun = true;
      this.#listener.onBegin();
    }
    if (response !== undefined) this.#tell(index, choice.take(response));
    if (final || choice.stopped) this.#endChoice(index, choice);
  }

  #tell(index: number, delta: ChoiceDelta): void {
    const { text, reasoning, toolCalls, logprobs, prompt } = delta;
    if (text !== "" || reasoning !== "" || toolCalls.length > 0 || logprobs.length > 0 || prompt.length > 0) {
      this.#listener.onDelta(index, delta);
    }
  }

  #endChoice(index: number, choice: TextChoice): void {
    this.#tell(index, choice.end());
    this.#listener.onChoiceEnd(index, choice.finishReason);
    if (--this.#open === 0) {
      this.#over = true;
      this.#listener.onEnd(this.#usage());
    }
    // The text after a stop string is not needed.
    if (choice.stopped) this.#calls[index]!.cancel();
  }

  #usage(): Usage | undefined {
    const prompts = new Map<number, number>();
    let completion = 0;
    for (const { prompt, inputTokens, outputTokens } of this.#choices) {
      if (inputTokens === undefined || outputTokens === undefined) return undefined;
      prompts.set(prompt, inputTokens);
      completion += outputTokens;
    }
    const prompt = [...prompts.values()].reduce((sum, tokens) => sum + tokens, 0);
    return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#listener.onError(error);
    this.cancel();
  }

  #settle(): void {
    if (--this.#unsettled > 0) return;
    this.#stopWatching();
    this.#listener.onSettled();
  }
}

export interface PromptCall extends TextCall {
  readonly choices: number;
  /** Makes a reader of the text of a choice, if the server has to find calls or reasoning in it. */
  readonly newReader?: (() => AnswerReader | undefined) | undefined;
  readonly isCallNamed?: boolean | undefined;
  /** True if the answer has the first call alone. */
  readonly isCallSingle?: boolean | undefined;
  /** True if the answer leaves reasoning out that the model reports. */
  readonly hidesReasoning?: boolean | undefined;
}

export interface ChoiceDelta {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCallDelta[];
  readonly logprobs: readonly RankedToken[];
  /** Tokens of the prompt, in the first delta if they were asked for. */
  readonly prompt: readonly RankedToken[];
}

/** One request to the model, and what becomes of its responses: the parts of a choice. */
class TextChoice {
  readonly tensors: Pick<InferInit, "inputs" | "requestedOutputs">;
  /** Tokens of the prompt, if the model reports them. */
  inputTokens: number | undefined;
  /** Tokens of the choice, if the model reports them. */
  outputTokens: number | undefined;
  /** True once a stop string has ended the text: the model need not go on. */
  stopped = false;
  /** Characters may be split between two responses. */
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #reasoningDecoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** Set if the server has to look for stop strings. */
  readonly #stops: StopTexts | undefined;
  /** Set if the server has to look for calls of tools or reasoning. */
  readonly #reader: AnswerReader | undefined;
  readonly #isCallNamed: boolean;
  readonly #isCallSingle: boolean;
  readonly #hidesReasoning: boolean;
  #reason: TextFinishReason | undefined;
  #calls = false;

  /** @param prompt which of the prompts of the request it continues: the tokens of a prompt are counted once */
  constructor(
    private readonly model: TextModel,
    call: PromptCall,
    readonly prompt: number,
    withoutEffect: (field: string) => void,
  ) {
    this.tensors = textInputs(model, call, withoutEffect);
    const { stop, include_stop_str_in_output } = call.sampling;
    // Models with `sampling_parameters` look for stop strings themselves.
    if (stop !== undefined && !model.inputs.has("sampling_parameters")) {
      this.#stops = new StopTexts(stop as readonly string[], include_stop_str_in_output === true);
    }
    this.#reader = call.newReader?.();
    this.#isCallNamed = call.isCallNamed === true;
    this.#isCallSingle = call.isCallSingle === true;
    this.#hidesReasoning = call.hidesReasoning === true;
  }

  /** Why the choice ended. A call of a named tool ends with `stop`, as in OpenAI's API. */
  get finishReason(): TextFinishReason {
    const reason = this.stopped ? "stop" : (this.#reason ?? "stop");
    if (reason === "stop") return this.#calls && !this.#isCallNamed ? "tool_calls" : "stop";
    return reason === "tool_calls" && this.#isCallNamed ? "stop" : reason;
  }

  take({ outputs }: InferenceResponse): ChoiceDelta {
    const bytes = firstBytes(outputs.get(this.model.textOutput));
    const text = bytes === undefined ? "" : this.#decoder.decode(bytes, { stream: true });
    this.inputTokens = outputCount(outputs.get("num_input_tokens")) ?? this.inputTokens;
    const tokens = outputCount(outputs.get("num_output_tokens"));
    if (tokens !== undefined) this.outputTokens = (this.outputTokens ?? 0) + tokens;
    const reason = outputText(outputs.get("finish_reason")) as TextFinishReason;
    if (FINISH_REASONS.includes(reason)) this.#reason = reason;
    const calls = readArray(outputText(outputs.get("tool_calls")), (call) => [call as ToolCallDelta]);
    const logprobs = readLogprobs(outputText(outputs.get("logprobs")));
    const prompt = readLogprobs(outputText(outputs.get("prompt_logprobs")));
    const certain = this.#beforeStop(text);
    const pieces = (certain === "" ? undefined : this.#reader?.push(certain)) ?? [{ content: certain }];
    const thoughts = this.#hidesReasoning ? undefined : firstBytes(outputs.get("reasoning_content"));
    if (thoughts === undefined) return this.#delta(pieces, calls, logprobs, prompt);
    const reasoning = this.#reasoningDecoder.decode(thoughts, { stream: true });
    return this.#delta([{ reasoning }, ...pieces], calls, logprobs, prompt);
  }

  /** The rest that was held back, with replacement characters for one that never became whole. */
  end(): ChoiceDelta {
    const text = this.stopped ? "" : this.#beforeStop(this.#decoder.decode()) + (this.#stops?.rest() ?? "");
    if (this.#reader === undefined) return this.#delta([{ content: text }], [], []);
    return this.#delta([...(text === "" ? [] : this.#reader.push(text)), ...this.#reader.end()], [], []);
  }

  #beforeStop(text: string): string {
    if (this.#stops === undefined) return text;
    if (this.stopped) return "";
    const piece = this.#stops.take(text);
    this.stopped = piece.stopped;
    return piece.text;
  }

  #delta(
    pieces: readonly AnswerPiece[],
    calls: readonly ToolCallDelta[],
    logprobs: readonly RankedToken[],
    prompt: readonly RankedToken[] = [],
  ): ChoiceDelta {
    let text = "";
    let reasoning = "";
    const toolCalls = [...calls];
    for (const piece of pieces) {
      if ("content" in piece) text += piece.content;
      else if ("reasoning" in piece) reasoning += piece.reasoning;
      else toolCalls.push(piece);
    }
    if (toolCalls.length > 0) this.#calls = true;
    const kept = this.#isCallSingle ? toolCalls.filter(({ index }) => index === 0) : toolCalls;
    return { text, reasoning, toolCalls: joinDeltas(kept), logprobs, prompt };
  }
}

function firstBytes(tensor: Tensor | undefined): Uint8Array | undefined {
  return tensor?.datatype === "BYTES" ? (tensor.elements[0] as Uint8Array | undefined) : undefined;
}

function outputText(tensor: Tensor | undefined): string {
  const bytes = firstBytes(tensor);
  return bytes === undefined ? "" : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
}

function outputCount(tensor: Tensor | undefined): number | undefined {
  if (tensor === undefined || tensor.datatype === "BYTES") return undefined;
  const [count] = tensor.elements as Iterable<number | bigint>;
  return count === undefined ? undefined : Number(count);
}

/** A token with its bytes and its number; without the number if the model does not report it. */
export interface ReportedToken {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: Buffer;
  readonly id: string | undefined;
}

/** The token that was chosen, and the most likely ones in descending order. */
export interface RankedToken extends ReportedToken {
  readonly top: readonly ReportedToken[];
}

interface TokenEntry {
  readonly logprob?: number | null;
  readonly rank?: number | null;
  readonly decoded_token?: string | null;
  readonly bytes?: readonly number[] | null;
}

/** A key that is a number. Inside of a string, such a key has escaped quotes. */
const NUMBER_KEY = /([{,]\s*)"(\d+)"(?=\s*:)/g;
/** A number that Python writes and JSON does not have. */
const NOT_FINITE = /:\s*(?:-?Infinity|NaN)\b/g;

/**
 * Reads the logprobs of vLLM's Triton backend: an array with an object for each token, from numbers of tokens to
 * `{ logprob, rank, decoded_token }`. The first key is the token that was chosen.
 */
function readLogprobs(text: string): RankedToken[] {
  // Objects of JavaScript sort keys that are numbers, so the numbers become names.
  const named = text.replace(NUMBER_KEY, '$1"t$2"').replace(NOT_FINITE, `:${LOWEST_LOGPROB}`);
  return readArray(named, (token) => (token === null ? [] : [rankedToken(token as object)]));
}

/** Reads an array of JSON. `null`, and a text that cannot be read, have no elements. */
function readArray<T>(text: string, read: (element: unknown) => readonly T[]): T[] {
  if (text === "" || text === "null") return [];
  try {
    const value = JSON.parse(text) as unknown;
    return Array.isArray(value) ? value.flatMap(read) : [];
  } catch {
    return [];
  }
}

function rankedToken(token: object): RankedToken {
  const entries: [string, TokenEntry][] = Object.entries(token);
  const [chosen = ["", {}]] = entries;
  const top = entries
    .filter(([, { rank }]) => rank !== null)
    .sort(([, a], [, b]) => (a.rank ?? Infinity) - (b.rank ?? Infinity));
  return { ...reportedToken(chosen), top: top.map(reportedToken) };
}

function reportedToken([key, { decoded_token, logprob, bytes }]: [string, TokenEntry]): ReportedToken {
  const token = decoded_token ?? "";
  return {
    token,
    logprob: logprob ?? LOWEST_LOGPROB,
    bytes: Buffer.from(bytes ?? Buffer.from(token)),
    id: /^t(\d+)$/.exec(key)?.[1],
  };
}

export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

export function joinToolCalls(deltas: readonly ToolCallDelta[]): ToolCall[] {
  const calls = new Map<number, { id: string; name: string; text: string }>();
  for (const { index, id, function: part } of deltas) {
    let call = calls.get(index);
    if (call === undefined) {
      call = { id: "", name: "", text: "" };
      calls.set(index, call);
    }
    if (id !== undefined) call.id = id;
    call.name += part?.name ?? "";
    call.text += part?.arguments ?? "";
  }
  return [...calls.values()].map(({ id, name, text }) => ({
    id,
    type: "function",
    function: { name, arguments: text },
  }));
}
