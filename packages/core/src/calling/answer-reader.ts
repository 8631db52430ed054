import type { Tensor } from "@tritonjs/protocol";
import type { TensorAnswer } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import type { ModelVersion } from "../model/model-version.js";
import type { RequestHandle } from "../request/request-handle.js";
import { type NestedOptions, sendInProcess } from "./send-in-process.js";

/** Reads the answers to one request one at a time. The model is held back until the next one is read. */
export class AnswerReader {
  readonly #waiting: TensorAnswer[] = [];
  readonly #request: RequestHandle;
  #wake = () => {};

  /** Sends the request; throws what it is refused for. */
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
    // A callback may have answered before it let go of the thread.
    if (this.#waiting.length > 0) sent.pause();
  }

  /** The next answer. There is none after the last: do not ask for it. */
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

  /** Tells a model that can be told, and gives the request up where that cannot be. */
  askToStop(): void {
    if (!this.#request.askToStop()) this.#request.cancel();
  }

  /** Nobody reads any more: gives the request up. */
  leave(): void {
    this.#request.cancel();
  }
}
