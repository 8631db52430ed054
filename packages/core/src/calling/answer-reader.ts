import type { Tensor } from "@tritonjs/protocol";
import type { TensorAnswer } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import type { ModelVersion } from "../model/model-version.js";
import type { RequestHandle } from "../request/request-handle.js";
import { type NestedOptions, sendInProcess } from "./send-in-process.js";

/** Reads the answers to one request, one at a time. The model is paused until the next answer is read. */
export class AnswerReader {
  readonly #waiting: TensorAnswer[] = [];
  readonly #request: RequestHandle;
  #wake = () => {};

  /** Sends the request. Throws the error with which it is refused. */
  constructor(
    model: ModelVersion,
    clock: Clock,
    inputs: ReadonlyMap<string, Tensor>,
    options: NestedOptions,
  ) {
    let sent: RequestHandle | undefined;
    this.#request = sendInProcess(model, clock, inputs, options, (outcome, final) => {
      this.#waiting.push({ outcome, final });
      sent?.pause();
      this.#wake();
    });
    sent = this.#request;
    // A callback may have answered before it returned control to the event loop.
    if (this.#waiting.length > 0) sent.pause();
  }

  /** Reads the next answer. Must not be called after the last one, because no other follows. */
  async next(): Promise<TensorAnswer> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) return next;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        this.#request.resume();
      });
    }
  }

  /** Asks the model to stop if it supports that. Otherwise cancels the request. */
  askToStop(): void {
    if (!this.#request.askToStop()) this.#request.cancel();
  }

  /** Cancels the request, because its reader has left. */
  leave(): void {
    this.#request.cancel();
  }
}
