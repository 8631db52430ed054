import { Exchange, type InferenceResponse, type InferInit } from "@tritonjs/core/frontend";
import { type Tensor, TritonError } from "@tritonjs/protocol";
import type { ToolCallDelta, ToolCallPiece } from "../chat/tool-call-family.js";
import { StopTexts } from "../text-answer.js";
import { type OpenAiExchange, traceModelRequest } from "./openai-exchange.js";
import type { Sampling } from "./request-fields.js";
import { type TextCall, type TextModel, textInputs } from "./text-model.js";

/** Numbers of tokens, as OpenAI names them. */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** One request to the model, whose answer is one choice. */
interface ChoiceRequest extends Pick<InferInit, "inputs" | "requestedOutputs"> {
  /** Which of the prompts of the request it continues: the tokens of a prompt are counted once. */
  readonly prompt: number;
  readonly filters: ChoiceFilters;
}

/** The requests that make one answer. */
export interface GenerationPlan {
  /** The look-up of the model, whose version all requests are for. */
  readonly call: Exchange;
  readonly model: TextModel;
  readonly choices: readonly ChoiceRequest[];
}

/** Receives the progress of an answer. After `onError` or `onEnd`, nothing more is called but `onSettled`. */
interface GenerationListener {
  /** Called once, before the first part: the model has begun to answer. */
  onBegin(): void;
  onDelta(choice: number, delta: ChoiceDelta): void;
  onChoiceEnd(choice: number, reason: FinishReason): void;
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
  /** Number of choices that have not ended. */
  #open: number;
  /** Number of requests that are in flight or still to be sent. */
  #unsettled: number;
  #begun = false;
  #over = false;
  #stopWatching: () => void = () => {};

  constructor(
    private readonly exchange: OpenAiExchange,
    private readonly plan: GenerationPlan,
    private readonly listener: GenerationListener,
  ) {
    this.#choices = plan.choices.map(({ filters }) => new TextChoice(plan.model, filters));
    this.#open = plan.choices.length;
    this.#unsettled = plan.choices.length;
  }

  /** Sends all requests. Errors go to the listener. */
  start(): void {
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
    const { service, requestId } = this.exchange;
    const { inputs, requestedOutputs } = this.plan.choices[index]!;
    const call = new Exchange(service, undefined, this.plan.call.model);
    this.#calls.push(call);
    const trace = traceModelRequest(this.exchange, this.plan.model.name);
    call.trace = trace;
    const init: InferInit = {
      id: this.plan.choices.length === 1 ? requestId : `${requestId}-${index}`,
      inputs,
      ...(requestedOutputs && { requestedOutputs }),
      trace: trace?.request,
    };
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
      this.listener.onBegin();
    }
    if (response !== undefined) this.#tell(index, choice.take(response));
    if (final || choice.stopped) this.#endChoice(index, choice);
  }

  #tell(index: number, delta: ChoiceDelta): void {
    if (delta.text !== "" || delta.toolCalls.length > 0 || delta.logprobs.length > 0) {
      this.listener.onDelta(index, delta);
    }
  }

  #endChoice(index: number, choice: TextChoice): void {
    this.#tell(index, choice.end());
    this.listener.onChoiceEnd(index, choice.finishReason);
    if (--this.#open === 0) {
      this.#over = true;
      this.listener.onEnd(this.#usage());
    }
    // The text after a stop string is not needed.
    if (choice.stopped) this.#calls[index]!.cancel();
  }

  #usage(): Usage | undefined {
    const prompts = new Map<number, number>();
    let completion = 0;
    for (const [index, { inputTokens, outputTokens }] of this.#choices.entries()) {
      if (inputTokens === undefined || outputTokens === undefined) return undefined;
      prompts.set(this.plan.choices[index]!.prompt, inputTokens);
      completion += outputTokens;
    }
    const prompt = [...prompts.values()].reduce((sum, tokens) => sum + tokens, 0);
    return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.listener.onError(error);
    this.cancel();
  }

  #settle(): void {
    if (--this.#unsettled > 0) return;
    this.#stopWatching();
    this.listener.onSettled();
  }
}

/** A call of a model for one prompt or one chat. */
export interface PromptCall extends TextCall {
  /** Number of choices for it. */
  readonly choices: number;
  /** Makes a reader of the calls in the text of a choice, if the server has to read them. */
  readonly toolCalls?: (() => ToolCallText | undefined) | undefined;
  /** True if the request names the tool to call. */
  readonly isCallNamed?: boolean | undefined;
}

/** Plans a request to the model for each choice of each prompt. Choices of one prompt have seeds in a row. */
export function planGeneration(
  exchange: OpenAiExchange,
  call: Exchange,
  model: TextModel,
  calls: readonly PromptCall[],
): GenerationPlan {
  const withoutEffect = (field: string) => exchange.warnings.withoutEffect(model.name, field);
  const choices: ChoiceRequest[] = [];
  for (const [prompt, given] of calls.entries()) {
    for (let choice = 0; choice < given.choices; choice++) {
      const sampling = samplingOfChoice(given.sampling, choice);
      const tensors = textInputs(model, { ...given, sampling }, withoutEffect);
      const { isCallNamed } = given;
      const filters = { stops: stopsFor(model, sampling), toolCalls: given.toolCalls?.(), isCallNamed };
      choices.push({ ...tensors, prompt, filters });
    }
  }
  return { call, model, choices };
}

function samplingOfChoice(sampling: Sampling, choice: number): Sampling {
  if (choice === 0 || typeof sampling.seed !== "number") return sampling;
  return { ...sampling, seed: sampling.seed + choice };
}

/** Models with `sampling_parameters` look for stop strings themselves. */
function stopsFor(model: TextModel, { stop, include_stop_str_in_output }: Sampling): StopTexts | undefined {
  if (stop === undefined || model.inputs.has("sampling_parameters")) return undefined;
  return new StopTexts(stop as readonly string[], include_stop_str_in_output === true);
}

/** A part of a choice. */
export interface ChoiceDelta {
  readonly text: string;
  readonly toolCalls: readonly ToolCallDelta[];
  readonly logprobs: readonly RankedToken[];
}

/** Reads calls of tools out of the text of a model. */
export interface ToolCallText {
  push(text: string): readonly ToolCallPiece[];
  end(): readonly ToolCallPiece[];
}

/** Filters for the text of a choice on its way to the client. */
interface ChoiceFilters {
  /** Set if the server has to look for stop strings. */
  readonly stops?: StopTexts | undefined;
  /** Set if the server has to look for calls of tools. */
  readonly toolCalls?: ToolCallText | undefined;
  /** True if the request names the tool to call: then a call ends with `stop`, as in OpenAI's API. */
  readonly isCallNamed?: boolean | undefined;
}

/** Turns the responses to one request into the parts of a choice. */
class TextChoice {
  /** Tokens of the prompt, if the model reports them. */
  inputTokens: number | undefined;
  /** Tokens of the choice, if the model reports them. */
  outputTokens: number | undefined;
  readonly #pieces: TextPieces;
  #reason: FinishReason | undefined;
  #stopped = false;
  #calls = false;

  constructor(
    model: TextModel,
    private readonly filters: ChoiceFilters,
  ) {
    this.#pieces = new TextPieces(model);
  }

  /** True once a stop string has ended the text: the model need not go on. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Why the choice ended. */
  get finishReason(): FinishReason {
    const reason = this.#stopped ? "stop" : (this.#reason ?? "stop");
    if (reason === "stop") return this.#calls && !this.filters.isCallNamed ? "tool_calls" : "stop";
    return reason === "tool_calls" && this.filters.isCallNamed ? "stop" : reason;
  }

  take(response: InferenceResponse): ChoiceDelta {
    const { text, finishReason, logprobs, inputTokens, outputTokens, toolCalls } =
      this.#pieces.read(response);
    this.inputTokens = inputTokens ?? this.inputTokens;
    if (outputTokens !== undefined) this.outputTokens = (this.outputTokens ?? 0) + outputTokens;
    this.#reason = finishReason ?? this.#reason;
    return this.#delta(this.#beforeStop(text), toolCalls, logprobs ?? []);
  }

  /** The rest that was held back. */
  end(): ChoiceDelta {
    const { stops, toolCalls } = this.filters;
    const text = this.#stopped ? "" : this.#beforeStop(this.#pieces.end()) + (stops?.rest() ?? "");
    const delta = this.#delta(text, [], []);
    return toolCalls === undefined ? delta : this.#joined(delta, toolCalls.end());
  }

  #beforeStop(text: string): string {
    const { stops } = this.filters;
    if (stops === undefined) return text;
    if (this.#stopped) return "";
    const piece = stops.take(text);
    this.#stopped = piece.stopped;
    return piece.text;
  }

  #delta(text: string, calls: readonly ToolCallDelta[], logprobs: readonly RankedToken[]): ChoiceDelta {
    if (calls.length > 0) this.#calls = true;
    const { toolCalls } = this.filters;
    if (toolCalls === undefined || text === "") return { text, toolCalls: calls, logprobs };
    return this.#joined({ text: "", toolCalls: calls, logprobs }, toolCalls.push(text));
  }

  #joined(delta: ChoiceDelta, pieces: readonly ToolCallPiece[]): ChoiceDelta {
    let text = delta.text;
    const toolCalls = [...delta.toolCalls];
    for (const piece of pieces) {
      if ("content" in piece) text += piece.content;
      else toolCalls.push(piece);
    }
    if (toolCalls.length > 0) this.#calls = true;
    return { text, toolCalls, logprobs: delta.logprobs };
  }
}

/** Why a choice ended. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/** One response of a text model. */
interface TextPiece {
  readonly text: string;
  readonly finishReason: FinishReason | undefined;
  readonly logprobs: readonly RankedToken[] | undefined;
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly toolCalls: readonly ToolCallDelta[];
}

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  length: "length",
  tool_calls: "tool_calls",
  content_filter: "content_filter",
};

/** Reads the responses of one request. Characters may be split between two responses. */
class TextPieces {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(private readonly model: TextModel) {}

  read({ outputs }: InferenceResponse): TextPiece {
    const text = firstBytes(outputs.get(this.model.textOutput));
    return {
      text: text === undefined ? "" : this.#decoder.decode(text, { stream: true }),
      finishReason: FINISH_REASONS[outputText(outputs.get("finish_reason"))],
      logprobs: readLogprobs(outputText(outputs.get("logprobs"))),
      inputTokens: outputCount(outputs.get("num_input_tokens")),
      outputTokens: outputCount(outputs.get("num_output_tokens")),
      toolCalls: readToolCalls(outputText(outputs.get("tool_calls"))),
    };
  }

  /** The rest of the text: replacement characters for one that never became whole. */
  end(): string {
    return this.#decoder.decode();
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

/** A token and how likely it was. */
export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
}

/** The token that was chosen, and the most likely ones in descending order. */
export interface RankedToken extends TokenLogprob {
  readonly top: readonly TokenLogprob[];
}

interface TokenEntry {
  readonly logprob?: number | null;
  readonly rank?: number | null;
  readonly decoded_token?: string | null;
}

/** OpenAI's value for a logprob of minus infinity. */
const LEAST_LOGPROB = -9999;

/** A key that is a number. Inside of a string, such a key has escaped quotes. */
const NUMBER_KEY = /([{,]\s*)"(\d+)"(?=\s*:)/g;
/** A number that Python writes and JSON does not have. */
const NOT_FINITE = /:\s*(?:-?Infinity|NaN)\b/g;

/**
 * Reads the logprobs of vLLM's Triton backend: an array with an object for each token, from numbers of tokens to
 * `{ logprob, rank, decoded_token }`. The first key is the token that was chosen.
 *
 * @returns undefined for `null`, and for a text that cannot be read
 */
function readLogprobs(text: string): RankedToken[] | undefined {
  if (text === "" || text === "null") return undefined;
  try {
    // Objects of JavaScript sort keys that are numbers, so the numbers become names.
    const named = text.replace(NUMBER_KEY, '$1"t$2"').replace(NOT_FINITE, `:${LEAST_LOGPROB}`);
    const tokens = JSON.parse(named) as unknown;
    if (!Array.isArray(tokens)) return undefined;
    return tokens.flatMap((token) => (token === null ? [] : [rankedToken(token)]));
  } catch {
    return undefined;
  }
}

function rankedToken(token: Readonly<Record<string, TokenEntry>>): RankedToken {
  const entries = Object.values(token);
  const [chosen = {}] = entries;
  const top = [...entries].sort((a, b) => rankOf(a) - rankOf(b));
  return { ...tokenLogprob(chosen), top: top.map(tokenLogprob) };
}

function rankOf({ rank }: TokenEntry): number {
  return rank ?? Number.MAX_SAFE_INTEGER;
}

function tokenLogprob({ decoded_token, logprob }: TokenEntry): TokenLogprob {
  return { token: decoded_token ?? "", logprob: logprob ?? LEAST_LOGPROB };
}

/** A whole call of a tool. */
export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Reads the output `tool_calls`. A text that is not a JSON array has no calls. */
function readToolCalls(text: string): readonly ToolCallDelta[] {
  if (text === "" || text === "null") return [];
  try {
    const calls = JSON.parse(text) as unknown;
    return Array.isArray(calls) ? (calls as ToolCallDelta[]) : [];
  } catch {
    return [];
  }
}

/** Joins the parts of calls. */
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
