import type { InferenceResponse, InferInit, PinnedModel, RequestHandle } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import type { TextModel } from "../model/text-model.js";
import type { FinishReason } from "../model/text-piece.js";
import type { OpenAiExchange } from "./exchange.js";
import { type ChoiceDelta, type ChoiceFilters, TextChoice } from "./text-choice.js";
import { traceModelRequest } from "./trace-model-request.js";

/** Numbers of tokens, as OpenAI names them. */
export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** One request to the model, whose answer is one choice. */
export interface ChoiceRequest extends Pick<InferInit, "inputs" | "requestedOutputs"> {
  /** Which of the prompts of the request it continues: the tokens of a prompt are counted once. */
  readonly prompt: number;
  readonly filters: ChoiceFilters;
}

/** The requests that make one answer. */
export interface GenerationPlan {
  readonly pinned: PinnedModel;
  readonly model: TextModel;
  readonly choices: readonly ChoiceRequest[];
}

/** Receives the progress of an answer. After `onError` or `onEnd`, nothing more is called but `onSettled`. */
export interface GenerationListener {
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
  readonly #exchange: OpenAiExchange;
  readonly #plan: GenerationPlan;
  readonly #listener: GenerationListener;
  readonly #choices: readonly TextChoice[];
  readonly #handles: (RequestHandle | undefined)[] = [];
  /** Number of choices that have not ended. */
  #open: number;
  /** Number of requests that are in flight or still to be sent. */
  #unsettled: number;
  #begun = false;
  #over = false;
  #stopWatching: () => void = () => {};

  constructor(exchange: OpenAiExchange, plan: GenerationPlan, listener: GenerationListener) {
    this.#exchange = exchange;
    this.#plan = plan;
    this.#listener = listener;
    this.#choices = plan.choices.map(({ filters }) => new TextChoice(plan.model, filters));
    this.#open = plan.choices.length;
    this.#unsettled = plan.choices.length;
  }

  /** Sends all requests. Errors go to the listener. */
  start(): void {
    const { request } = this.#exchange;
    this.#stopWatching = request.onGone(() => this.cancel());
    for (let index = 0; index < this.#choices.length; index++) {
      if (this.#over || request.gone) this.#settle();
      else this.#send(index);
    }
    // An inline callback has already run by now, and the client may have left meanwhile.
    if (request.gone) this.cancel();
  }

  /** Stops all requests. The listener gets no further part, end or error. */
  cancel(): void {
    this.#over = true;
    for (const handle of this.#handles) handle?.cancel();
  }

  pause(): void {
    for (const handle of this.#handles) handle?.pause();
  }

  resume(): void {
    for (const handle of this.#handles) handle?.resume();
  }

  #send(index: number): void {
    const { pinned, choices } = this.#plan;
    const { inputs, requestedOutputs } = choices[index]!;
    const id = choices.length === 1 ? this.#exchange.requestId : `${this.#exchange.requestId}-${index}`;
    const trace = traceModelRequest(this.#exchange, this.#plan.model.name);
    const init: InferInit = {
      id,
      inputs,
      ...(requestedOutputs && { requestedOutputs }),
      trace: trace?.request,
    };
    try {
      this.#handles[index] = pinned.infer(init, (outcome, final, handle) => {
        if (outcome !== undefined) trace?.responded();
        this.#handles[index] = handle;
        this.#receive(index, outcome, final);
      });
    } catch (refusal) {
      this.#fail(refusal);
      this.#settle();
    }
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
    if (delta.text !== "" || delta.toolCalls.length > 0 || delta.logprobs.length > 0) {
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
    if (choice.stopped) this.#handles[index]?.cancel();
  }

  #usage(): Usage | undefined {
    const prompts = new Map<number, number>();
    let completion = 0;
    for (const [index, { inputTokens, outputTokens }] of this.#choices.entries()) {
      if (inputTokens === undefined || outputTokens === undefined) return undefined;
      prompts.set(this.#plan.choices[index]!.prompt, inputTokens);
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
