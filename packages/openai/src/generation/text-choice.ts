import type { InferenceResponse } from "@tritonjs/core/frontend";
import type { StopTexts, ToolCallDelta, ToolCallPiece } from "@tritonjs/text-generation";
import type { TextModel } from "../model/text-model.js";
import { type FinishReason, TextPieces } from "../model/text-piece.js";
import type { RankedToken } from "../model/token-logprobs.js";

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
export interface ChoiceFilters {
  /** Set if the server has to look for stop strings. */
  readonly stops?: StopTexts | undefined;
  /** Set if the server has to look for calls of tools. */
  readonly toolCalls?: ToolCallText | undefined;
  /** True if the request names the tool to call: then a call ends with `stop`, as in OpenAI's API. */
  readonly isCallNamed?: boolean | undefined;
}

/** Turns the responses to one request into the parts of a choice. */
export class TextChoice {
  /** Tokens of the prompt, if the model reports them. */
  inputTokens: number | undefined;
  /** Tokens of the choice, if the model reports them. */
  outputTokens: number | undefined;
  readonly #pieces: TextPieces;
  readonly #filters: ChoiceFilters;
  #reason: FinishReason | undefined;
  #stopped = false;
  #calls = false;

  constructor(model: TextModel, filters: ChoiceFilters) {
    this.#pieces = new TextPieces(model);
    this.#filters = filters;
  }

  /** True once a stop string has ended the text: the model need not go on. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Why the choice ended. */
  get finishReason(): FinishReason {
    const reason = this.#stopped ? "stop" : (this.#reason ?? "stop");
    if (reason === "stop") return this.#calls && !this.#filters.isCallNamed ? "tool_calls" : "stop";
    return reason === "tool_calls" && this.#filters.isCallNamed ? "stop" : reason;
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
    const { stops, toolCalls } = this.#filters;
    const text = this.#stopped ? "" : this.#beforeStop(this.#pieces.end()) + (stops?.rest() ?? "");
    const delta = this.#delta(text, [], []);
    return toolCalls === undefined ? delta : this.#joined(delta, toolCalls.end());
  }

  #beforeStop(text: string): string {
    const { stops } = this.#filters;
    if (stops === undefined) return text;
    if (this.#stopped) return "";
    const piece = stops.take(text);
    this.#stopped = piece.stopped;
    return piece.text;
  }

  #delta(text: string, calls: readonly ToolCallDelta[], logprobs: readonly RankedToken[]): ChoiceDelta {
    if (calls.length > 0) this.#calls = true;
    const { toolCalls } = this.#filters;
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
